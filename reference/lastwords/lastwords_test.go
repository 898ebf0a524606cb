package lastwords

import (
	"slices"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	for _, c := range []struct {
		name, output string
		want         []string
		unknown      bool
	}{
		{
			name: "Python", output: "Traceback (most recent call last):\n  File \"/srv/server.py\", line 1, in <module>\n    import fastmcp\nModuleNotFoundError: No module named 'fastmcp'\n",
			want: []string{"ModuleNotFoundError: No module named 'fastmcp'"},
		}, {
			name: "Python, syntax", output: "  File \"server.py\", line 1\n    a b\n      ^\nSyntaxError: invalid syntax\n",
			want: []string{"SyntaxError: invalid syntax"},
		}, {
			name: "Python, exception group", output: "  + Exception Group Traceback (most recent call last):\n  |   File \"server.py\", line 9, in <module>\n  |     run()\n" +
				"  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n  +-+---------------- 1 ----------------\n    | Traceback (most recent call last):\n" +
				"    |   File \"server.py\", line 4, in run\n    |     raise ValueError(\"no token\")\n    | ValueError: no token\n    +------------------------------------\n",
			want: []string{"ValueError: no token"},
		}, {
			name: "Python, chained", output: "Traceback (most recent call last):\n  File \"s.py\", line 2, in <module>\nKeyError: 'API_KEY'\n\nDuring handling of the above exception, another exception occurred:\n\n" +
				"Traceback (most recent call last):\n  File \"s.py\", line 4, in <module>\nacme.config.ConfigError: API_KEY is not set\n",
			want: []string{"acme.config.ConfigError: API_KEY is not set"},
		}, {
			name: "Node.js", output: "node:internal/modules/cjs/loader:1210\n  throw err;\n  ^\n\nError: Cannot find module '/srv/dist/index.js'\nRequire stack:\n- /srv/[eval]\n" +
				"    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15) {\n  code: 'MODULE_NOT_FOUND',\n  requireStack: [ '/srv/[eval]' ]\n}\n\nNode.js v20.20.2\n",
			want: []string{"Error: Cannot find module '/srv/dist/index.js'"},
		}, {
			name: "Node.js, module", output: "node:internal/modules/esm/resolve:873\n  throw new ERR_MODULE_NOT_FOUND(packageName, fileURLToPath(base), null);\n        ^\n\n" +
				"Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /srv/a.mjs\n    at packageResolve (node:internal/modules/esm/resolve:873:9) {\n  code: 'ERR_MODULE_NOT_FOUND'\n}\n\nNode.js v22.1.0\n",
			want: []string{"Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /srv/a.mjs"},
		}, {
			name: "Node.js, cause", output: "TypeError: fetch failed\n    at node:internal/deps/undici/undici:12345:11 {\n  [cause]: Error: connect ECONNREFUSED 127.0.0.1:1\n}\n\nNode.js v22.1.0\n",
			want: []string{"TypeError: fetch failed"},
		}, {
			name: "Go", output: "panic: no configuration\n\ngoroutine 1 [running]:\nmain.main()\n\t/srv/main.go:2 +0x25\nexit status 2\n",
			want: []string{"panic: no configuration"},
		}, {
			name: "Go, deadlock", output: "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [chan receive]:\nmain.main()\n\t/srv/main.go:5 +0x2c\n",
			want: []string{"fatal error: all goroutines are asleep - deadlock!"},
		}, {
			name: "Java", output: "Exception in thread \"main\" java.lang.IllegalStateException: no key\n\tat A.main(A.java:1)\n",
			want: []string{`Exception in thread "main" java.lang.IllegalStateException: no key`},
		}, {
			name: "Java, cause", output: "Exception in thread \"main\" java.lang.RuntimeException: cannot start\n\tat A.main(A.java:1)\nCaused by: java.net.BindException: Address already in use\n\tat A.main(A.java:1)\n\t... 3 more\n",
			want: []string{"Caused by: java.net.BindException: Address already in use"},
		}, {
			name: "Java, archive", output: "Error: Unable to access jarfile server.jar\n",
			want: []string{"Error: Unable to access jarfile server.jar"},
		}, {
			name: "Rust", output: "\nthread 'main' (25011) panicked at src/main.rs:1:37:\ncalled `Result::unwrap()` on an `Err` value: NotPresent\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n",
			want: []string{"thread 'main' (25011) panicked at src/main.rs:1:37:", "called `Result::unwrap()` on an `Err` value: NotPresent"},
		}, {
			name: "Rust, older", output: "thread 'main' panicked at 'no key', src/main.rs:2:5\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n",
			want: []string{"thread 'main' panicked at 'no key', src/main.rs:2:5"},
		}, {
			name: ".NET", output: "Unhandled exception. System.InvalidOperationException: no key\n   at Program.Main() in /srv/Program.cs:line 3\n",
			want: []string{"Unhandled exception. System.InvalidOperationException: no key"},
		}, {
			name: "Ruby", output: "server.rb:1:in `require': cannot load such file -- mcp (LoadError)\n\tfrom server.rb:1:in `<main>'\n",
			want: []string{"server.rb:1:in `require': cannot load such file -- mcp (LoadError)"},
		}, {
			name: "sh", output: "sh: 1: my-server: not found\n", want: []string{"sh: 1: my-server: not found"},
		}, {
			name: "bash", output: "bash: line 1: my-server: command not found\r\n", want: []string{"bash: line 1: my-server: command not found"},
		}, {
			name: "npm", output: "npm warn config production Use `--omit=dev` instead.\nnpm error code E404\nnpm error 404 Not Found - GET https://registry.npmjs.org/no-such-server - Not found\nnpm error 404\n" +
				"npm error A complete log of this run can be found in: /root/.npm/_logs/2025-debug-0.log\n",
			want: []string{"npm error 404 Not Found - GET https://registry.npmjs.org/no-such-server - Not found"},
		}, {
			name: "npm, older", output: "npm ERR! Missing script: \"start\"\nnpm ERR! \nnpm ERR! To see a list of scripts, run:\n",
			want: []string{`npm ERR! Missing script: "start"`},
		}, {
			name: "npm after the program", output: "sh: 1: tsx: not found\nnpm error Lifecycle script `start` failed with error:\nnpm error code 127\n",
			want: []string{"sh: 1: tsx: not found"},
		}, {
			name: "docker", output: "docker: Error response from daemon: pull access denied for nope.\nSee 'docker run --help'.\n",
			want: []string{"docker: Error response from daemon: pull access denied for nope."},
		}, {
			name: "uvx", output: "  × No solution found when resolving tool dependencies:\n  ╰─▶ Because no-such-server was not found in the package registry, your\n      requirements are unsatisfiable.\n",
			want: []string{"× No solution found when resolving tool dependencies:", "╰─▶ Because no-such-server was not found in the package registry, your"},
		}, {
			name: "unknown", output: "a\nb\n\nconnecting\nAPI_KEY is not set\n\nbye\n\n", want: []string{"connecting", "API_KEY is not set", "bye"}, unknown: true,
		}, {
			name: "a log that names an error", output: "2025-06-18 INFO ready for Error: tests\nbye", want: []string{"2025-06-18 INFO ready for Error: tests", "bye"}, unknown: true,
		},
		{name: "nothing", unknown: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, known := Find(c.output)
			if !slices.Equal(got, c.want) || known == c.unknown {
				t.Errorf("%q, known: %t; want %q, %t", strings.Join(got, "\n"), known, strings.Join(c.want, "\n"), !c.unknown)
			}
		})
	}
}
