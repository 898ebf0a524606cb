// Package server is the reference server: every feature of MCP 2025-06-18 on
// every transport, conformant unless it is told otherwise.
//
//	s := server.New(server.Options{})
//	err := s.RunStdio(ctx, os.Stdin, os.Stdout, os.Stderr) // one client
//
//	l, err := server.Listen(":8080") // 127.0.0.1:8080
//	err = s.HTTP().Serve(ctx, l)     // /mcp, and /sse with /messages
//
// RunStdio has the signature of [transport.Func], so that the server can also run
// inside this process. With [Options.Trace] it records everything that crosses, in
// the same way as the client ends in package transport, so that the same rules can
// judge the client.
//
// # Sessions
//
// Each connection is a [Session] with lists, subscriptions and a log level of
// its own. On stdio and the legacy transport, a message is handled when the one
// before it was handled, or has begun to wait ([Request.Detach]), or takes long:
// simple requests are answered in order. Over Streamable HTTP each POST
// is served on its own.
//
// A message that belongs to a request of the client (progress, a log message, a request made by a tool) travels on
// the stream of its POST: [Request.Notify], [Request.Call]. Everything else travels on the listening stream, and
// waits there for a client that has none: [Session.Notify], [Session.Call].
//
// # Misbehaving
//
// A [Behaviour] makes the server depart from the specification; its zero value
// does not. It has hooks at every depth, so that a fault is a few lines at the
// depth where it belongs:
//
//	raw input     Behaviour.Inbound, Stdio.Stdin
//	envelope in   Behaviour.Valid, Batches, Receive
//	states        Lifecycle, Connected, Initialized
//	features      Methods: a Middleware around each method; Options.Catalogue
//	envelope out  Behaviour.Send: drop, change, repeat, delay, reroute
//	SSE           HTTP.Event, HTTP.Replay, HTTP.KeepOpen
//	HTTP          HTTP.Reply by Situation, HTTP.Middleware
//	raw output    Behaviour.Frame, Stdio.Stdout
//	process       Stdio.Start, Quit, Linger, ExitCode
//
// A tool without a name:
//
//	Methods: map[string]server.Middleware{
//		"tools/list": server.EditItems("tools", func(tool map[string]any) { delete(tool, "name") }),
//	}
//
// Every response twice:
//
//	Send: server.OnResponse("*", func(out *server.Outgoing) []*server.Outgoing {
//		return []*server.Outgoing{out, out.Clone()}
//	})
//
// Progress after the response:
//
//	Send: server.OnResponse("tools/call", func(out *server.Outgoing) []*server.Outgoing {
//		token, _ := out.Answers.Token()
//		late := out.Answers.Notification("notifications/progress",
//			map[string]any{"progressToken": token, "progress": 999})
//		return []*server.Outgoing{out, late}
//	})
//
// Ids as strings, whatever they were:
//
//	Send: server.OnResponse("*", func(out *server.Outgoing) []*server.Outgoing {
//		out.Message["id"] = out.Answers.ID.Key()
//		return []*server.Outgoing{out}
//	})
//
// Log messages below the level that was set:
//
//	Methods: map[string]server.Middleware{"logging/setLevel": server.Always(map[string]any{})}
//
// A web page may talk to the server:
//
//	HTTP: server.HTTP{Reply: func(r *server.Reply) { r.Pass = r.Situation == server.ForeignOrigin }}
//
// 200 instead of 202:
//
//	HTTP: server.HTTP{Reply: func(r *server.Reply) {
//		if r.Situation == server.Accepted {
//			r.Status = http.StatusOK
//		}
//	}}
//
// The same event id everywhere:
//
//	HTTP: server.HTTP{Event: func(e *server.Event) []*server.Event { e.ID = "1"; return []*server.Event{e} }}
//
// A banner on stdout:
//
//	Stdio: server.Stdio{Start: func(stdout, _ io.Writer) { fmt.Fprintln(stdout, "ready") }}
//
// Death by bad JSON:
//
//	Stdio: server.Stdio{ExitCode: 1, Quit: func(_ int, line []byte) bool { return !json.Valid(line) }}
//
// A fault that has to remember something keeps it in [Session.Value], as one
// Behaviour serves many sessions.
package server
