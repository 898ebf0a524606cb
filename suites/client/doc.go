// Package client launches clients under test, each against the server of a scenario, and records what they do. The
// scenarios are in package suites/internal/client. They import this package, and an [Engine] is given them.
//
//   - [Scenario] is a server and a judge of what a client does there. [T] is what the judge looks at, and what it
//     records. [Asker] is how a script of the server talks to the client.
//   - [Engine] launches the client for each scenario. One launch may serve several scenarios ([Combined]). What is
//     found together is confirmed alone.
//   - [AuthorizationSetup] says how a server is protected, and [Flow] how the client obtained its token.
//   - [Command] starts a client, and [Bridge] is the process that a client starts as its server over stdio.
package client
