// Package client holds the scenarios for clients under test. Each scenario is a server that behaves in a certain way,
// and a judge of what the client does. A scenario is a plain value: it can be listed and run without a framework. The
// passive rules of package judge look at every connection of every scenario. Package suites/client launches clients.
//
// # Writing a scenario
//
// A scenario has Name, Requirements, Needs, Options and Judge. Needs is the reason that is given if the client never
// came that far. Requirements that Judge leaves undecided are inconclusive, with that reason.
//
// Most scenarios have Options: client.Scripted(f). The script f runs once in a session, while the client's first
// request after the handshake waits. It talks to the client with a [client.Asker]:
//
//   - a.Ask(id, …) sends a request and waits. a.Send and a.Notify do not wait. a.Fence(id) pings.
//   - askAtOnce(a, …) sends several requests before it waits.
//   - a.Vary sends the members of a family that the scenario names in Families, as many as the time allows.
//
// Give each request a string id of its own. Judge finds the exchange by t.Asked(id) or t.Answered(id), and a
// fault is found by replies(id).
//
// Judge states expectations with matchers, as a check does: t.Check breaks or exercises the requirement, and
// t.WarnUnless only warns. Named says what was answered, and BeTrueBecause states a plain fact. If several things may
// have happened, Judge says t.Violation, t.Exercised or t.Inconclusive. A missing answer counts only if the client
// was there: ask t.SilentTo.
//
// # Company
//
// One launch may serve several scenarios, a combined launch (combined.go), at no further cost. A scenario may join one
// if it does not hide the others, even if some clients do not survive it. A combined launch with a finding costs one
// more launch: its scenarios run again in parts or alone. Scenarios of authorization have combined launches of their
// own.
//
// A scenario whose server breaks rules on purpose (Breaks, Faults) keeps the rules from judging the answers to its
// requests. It must not join scenarios that depend on them. After names the scenarios that decide whether this one
// can show anything, and Excused says why it cannot. Lane sets those that keep a client waiting apart; they
// start first.
package client
