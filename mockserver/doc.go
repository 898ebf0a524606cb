// Package mockserver is the reference server told to misbehave: a catalogue of
// faults, each of which breaks one requirement of the revision in a way that
// servers have been seen to break it.
//
//	o := server.Options{}
//	fault, _ := mockserver.Find("base.response-twice")
//	fault.Apply(&o)
//	err := server.New(o).RunStdio(ctx, os.Stdin, os.Stdout, os.Stderr)
//
// A fault proves every check and rule of the project. The kill matrix (docs/kill-matrix.md) lists them.
//
// # Writing a fault
//
// A fault names the requirement that it breaks, says in one line how the wire differs, and overrides the behaviour of
// the reference server. Package hooks makes most faults one to three lines. Its other members:
//
//   - Collateral names the requirements that break as well.
//   - Form says what the fault takes to show if the plain stimulus misses it: another value, a second session,
//     requests at the same time, an order.
//
// A fault shows with any seed and with its requirement alone selected. Prefer a refusal to silence: silence also
// breaks base.response.present. If two answers have to agree, put the fault into the one that the check asks for.
//
// Other forms are derived from most faults: in all sessions but the first, beside other requests, from the second
// time on, and in order: a client that dies of something takes its leave there instead. TestForms tries them
// (docs/kill-matrix-forms.md). If a form is not found, mend the check: it sends its stimulus again in a session that
// is there, beside a call, or a second time. fixtures/forms.yaml excuses only a form that makes no sense, with the
// reason.
//
// The matrix runs in virtual time (testing/synctest). A fault may wait for a channel, a timer or a condition of its
// own run. Sockets, files and a lock that is held across a wait keep virtual time from passing.
package mockserver
