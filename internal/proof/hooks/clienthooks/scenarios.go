package clienthooks

// The scenarios that faults and oddities name.
const (
	Requests        = "exchange/requests"
	Notifications   = "exchange/notifications"
	Envelopes       = "hostile/envelopes"
	CutStream       = "http/cut-stream"
	ListeningStream = "http/listening"
	LostSession     = "http/lost-session"
	Sampling        = "features/sampling"
	Elicitation     = "features/elicitation"
	RootsSeen       = "features/roots"
	Sequences       = "sequences/session"
	Framed          = "exchange/frames"
)
