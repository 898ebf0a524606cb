#!/usr/bin/env node
// Starts the program of the package for this platform, with our arguments and streams,
// passes signals on to it, and ends as it ended.
"use strict";

const { spawn } = require("node:child_process");

const notStarted = 2; // the exit code for wrong usage or configuration

const name = `@mcpconform/${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "mcpconform.exe" : "mcpconform";

function fail(message) {
  console.error(`mcpconform: ${message}`);
  process.exit(notStarted);
}

let program;
try {
  program = require.resolve(`${name}/bin/${file}`);
} catch {
  fail(
    name in require("../package.json").optionalDependencies
      ? `the package ${name} is not installed; install mcpconform again, with its optional dependencies`
      : `there is no package for ${process.platform} on ${process.arch}; build it with Go: go install github.com/mcpconform/mcpconform/cmd/mcpconform@latest`,
  );
}

let child;

// Without a handler a signal would end this process and leave the program behind. On
// Windows the console tells the program itself, and a signal that is passed on would kill it.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    if (process.platform !== "win32") child.kill(signal);
  });
}

// npx starts us by a shell, which a signal to npx ends without our hearing of it.
if (process.env.npm_lifecycle_event === "npx") {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    child.kill("SIGTERM");
  }, 500);
}

child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => fail(`${program} cannot be started: ${error.message}`));
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
