// Package server holds the checks of servers, one file for each page of the specification.
//
// # Writing a check
//
// A check names the requirements that it serves, what it needs, and a body of about ten lines: a stimulus and an
// expectation. The first requirement is the one that a failed expectation breaks; t.About changes that. All of them
// count as exercised when the body returns.
//
// # Expectations
//
//   - t.Expect ends the body if the matcher fails. t.Check goes on. t.WarnUnless only warns.
//   - t.Assume is for the control: if it fails, the check is inconclusive.
//   - t.Call and t.Await fail the check if no answer comes. t.Attempt does so too, except for tool calls.
//   - t.Skip and t.Inconclusive end the check with a reason, which says what the user can do.
//   - t.Note records an observation where the specification is silent.
//
// The description of an expectation is the clause with which the finding begins.
//
// # Sessions
//
// Needs.Session chooses the session:
//
//   - Shared: other checks use it at the same time. Do nothing that they would notice.
//   - Own: other checks have used it before, none uses it now. Judge what came since t.Mark, and leave no request open.
//     Needs.Options names the capabilities of its client.
//   - Fresh: a session for this check alone, for what depends on how a session begins or ends.
//   - Raw: a connection on which nothing was sent.
//   - None: no connection.
//
// Over stdio each Fresh or Raw session costs a process; prefer Shared and Own. A check that begins several sessions
// begins them side by side, with t.OpenEach or, for raw requests, t.DoEach.
//
// # Values
//
// A check that sends a value draws a family of values and names it in Families:
//
//	t.Vary(t.Draw("ids"), func(m family.Member) { … })
//
// The members of a family that show the same become one finding. Expect with t.Check, so that the other members are
// tried too. A new value is a line in fixtures/families, with its reason.
//
// # Time
//
// Ping is the fence. To prove that nothing comes, call t.Fence and look at what came before its answer. Do not wait
// for silence. A check that waits for something that may never come is in the lane check.Waiting; it then starts
// first. A server may send some things of its own accord: t.Soon says how long to wait for them. A check that gives
// the server no work sets Needs.Brief; a missing answer then costs a small multiple of the slowest answer so far.
//
// A check about several requests at the same time sets Needs.Concurrent and has an Own session. Name its requirement
// among the exceptions of TestServersThatTakeTurns.
//
// # Fairness
//
// Send the accepted twin of what must be refused. Judge a missing refusal only where a sentence demands validation or
// names the error; elsewhere a result is a note (docs/positions.md, leniency). Judge the code of any error. Declare
// what a message of ours breaks on purpose (client.Deliberately), as our own messages are judged too. Needs.Server
// names the capability that a server must declare, or it is skipped; Needs.Lacking says what else is missing. Ask the
// log what answers what: Log.Exchange, Log.Carrier and Log.Conversation. t.Target.List holds what the server lists,
// read once a run.
package server
