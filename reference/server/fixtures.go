package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"net/mail"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// These are the fixtures that the reference server offers. Names that begin with test_, and the test: scheme, are
// those that other conformance tools expect of a test server.

const watchedURI = "test://watched-resource"

// o and a make the literals below readable.
type o = map[string]any
type a = []any

// DefaultCatalogue returns tools, resources, templates and prompts that
// exercise every feature of the revision. Each call returns an independent value.
func DefaultCatalogue() *Catalogue {
	return &Catalogue{
		Tools: defaultTools(), Resources: defaultResources(), Templates: defaultTemplates(), Prompts: defaultPrompts(),
	}
}

func textBlock(text string) o { return o{"type": "text", "text": text} }

func imageBlock() o {
	return o{"type": "image", "data": base64.StdEncoding.EncodeToString(pixel), "mimeType": "image/png"}
}

func audioBlock() o {
	return o{"type": "audio", "data": base64.StdEncoding.EncodeToString(silence), "mimeType": "audio/wav"}
}

func embeddedBlock(uri string) o {
	return o{"type": "resource", "resource": o{
		"uri": uri, "mimeType": "text/plain", "text": "This is an embedded resource.",
	}}
}

func content(blocks ...any) o { return o{"content": blocks} }

// failure is the result of a tool that could not do its work (server/tools#error-handling).
func failure(text string) o { return o{"content": a{textBlock(text)}, "isError": true} }

// pixel is a PNG image of one red point.
var pixel = func() []byte {
	var b bytes.Buffer
	b.WriteString("\x89PNG\r\n\x1a\n")
	chunk := func(kind string, data []byte) {
		_ = binary.Write(&b, binary.BigEndian, uint32(len(data)))
		body := append([]byte(kind), data...)
		b.Write(body)
		_ = binary.Write(&b, binary.BigEndian, crc32.ChecksumIEEE(body))
	}
	chunk("IHDR", []byte{0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0, 0, 0})
	// A zlib stream with one stored block: filter 0, then red, green, blue.
	chunk("IDAT", []byte{0x78, 0x01, 0x01, 4, 0, 0xFB, 0xFF, 0, 0xFF, 0, 0, 0x03, 0x01, 0x01, 0x00})
	chunk("IEND", nil)
	return b.Bytes()
}()

// silence is a WAV file of eight silent samples.
var silence = func() []byte {
	var b bytes.Buffer
	const samples = 8
	b.WriteString("RIFF")
	_ = binary.Write(&b, binary.LittleEndian, uint32(36+samples))
	b.WriteString("WAVEfmt ")
	for _, v := range []any{uint32(16), uint16(1), uint16(1), uint32(8000), uint32(8000), uint16(1), uint16(8)} {
		_ = binary.Write(&b, binary.LittleEndian, v)
	}
	b.WriteString("data")
	_ = binary.Write(&b, binary.LittleEndian, uint32(samples))
	b.Write(bytes.Repeat([]byte{0x80}, samples))
	return b.Bytes()
}()

var noArguments = o{"type": "object", "properties": o{}, "additionalProperties": false}

func schemaOf(properties o, required ...any) o {
	s := o{"type": "object", "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// call is what a default tool does.
type call = func(ctx context.Context, r *Request, arguments map[string]any) (any, *wire.Error)

// readOnly describes a tool that does not change anything.
func readOnly(name, title, description string, input o, serve call) *Tool {
	return &Tool{Call: serve, Definition: o{
		"name": name, "title": title, "description": description, "inputSchema": input,
		"annotations": o{"title": title, "readOnlyHint": true, "openWorldHint": false},
	}}
}

// changing describes a tool that changes what the session offers.
func changing(name, title, description string, serve call) *Tool {
	t := readOnly(name, title, description, clone(noArguments).(o), serve)
	t.Definition["annotations"] = o{
		"title": title, "readOnlyHint": false, "destructiveHint": false, "idempotentHint": false,
		"openWorldHint": false,
	}
	return t
}

// fixed is a tool that always returns the same content.
func fixed(blocks ...any) call {
	return func(context.Context, *Request, map[string]any) (any, *wire.Error) {
		return clone(content(blocks...)), nil
	}
}

func defaultTools() []*Tool {
	none := func() o { return clone(noArguments).(o) }
	tools := []*Tool{
		readOnly("test_simple_text", "Simple text", "Returns one block of text.", none(),
			fixed(textBlock("This is a simple text response for testing."))),
		readOnly("test_image_content", "Image", "Returns an image of one pixel.", none(), fixed(imageBlock())),
		readOnly("test_audio_content", "Audio", "Returns a moment of silence.", none(), fixed(audioBlock())),
		readOnly("test_embedded_resource", "Embedded resource", "Returns an embedded text resource.", none(),
			fixed(embeddedBlock("test://embedded-resource"))),
		readOnly("test_multiple_content_types", "Several kinds of content", "Returns text, an image and a resource.",
			none(),
			fixed(textBlock("Multiple content types test:"), imageBlock(),
				embeddedBlock("test://mixed-content-resource"))),
		readOnly("test_tool_with_logging", "Logging", "Sends three log messages.", none(), logThrice),
		readOnly("test_tool_with_progress", "Progress", "Reports progress in three steps.", none(), progressThrice),
		readOnly("test_error_handling", "Failure", "Always fails.", none(),
			func(context.Context, *Request, map[string]any) (any, *wire.Error) {
				return failure("This tool intentionally returns an error for testing"), nil
			}),
		readOnly("test_sampling", "Sampling", "Asks the client for a completion by its model.",
			schemaOf(o{"prompt": o{"type": "string", "description": "What to ask."}}, "prompt"), sample),
		readOnly("test_elicitation", "Elicitation", "Asks the user for a name and an address.",
			schemaOf(o{"message": o{"type": "string", "description": "The text for the user."}}, "message"), elicit),
		readOnly("test_ping", "Ping", "Asks whether the client is there.", none(), pingClient),
		readOnly("test_roots", "Roots", "Asks the client for its roots.", none(), listRoots),
		readOnly("echo", "Echo", "Returns the text that it is given.",
			schemaOf(o{"text": o{"type": "string", "description": "Any text."}}, "text"),
			func(_ context.Context, _ *Request, arguments map[string]any) (any, *wire.Error) {
				return content(textBlock(member(arguments, "text"))), nil
			}),
		sumTool(),
		readOnly("resource_links", "Resource links", "Returns links to resources, one of which no list shows.", none(),
			fixed(
				o{"type": "resource_link", "uri": "test://static-text", "name": "static-text",
					"mimeType": "text/plain"},
				o{"type": "resource_link", "uri": "test://template/7/data", "name": "template-7",
					"mimeType": "application/json"},
			)),
		readOnly("annotated_content", "Annotated content", "Returns content with annotations.", none(),
			fixed(
				o{"type": "text", "text": "For the user.", "annotations": o{"audience": a{"user"}, "priority": 1.0}},
				o{"type": "text", "text": "For both.", "annotations": o{
					"audience": a{"user", "assistant"}, "priority": 0.3, "lastModified": "2025-06-18T09:00:00Z",
				}},
			)),
		readOnly("slow", "Slow", "Takes its time, reports progress, and stops when it is cancelled.",
			schemaOf(o{"seconds": o{
				"type": "number", "minimum": 0, "maximum": 60, "description": "How long it takes; 2 by default.",
			}}), slow),
		readOnly("log_levels", "Log levels", "Sends one log message of each level.", none(), logAll),
	}
	tools = append(tools, changingTools()...)
	tools[0].Definition["_meta"] = o{"com.example.mcpconform/kind": "fixture"}
	for _, t := range tools {
		if slices.Contains([]string{"test_sampling", "test_elicitation", "test_roots"}, t.Name()) {
			t.Definition["annotations"].(o)["openWorldHint"] = true
		}
	}
	return tools
}

// changingTools returns the tools that change a list or a resource.
func changingTools() []*Tool {
	return []*Tool{
		changing("toggle_tool", "Change the tools", "Adds a tool to the list, or removes it again.",
			func(_ context.Context, r *Request, _ map[string]any) (any, *wire.Error) {
				return toggled(r.Session.ToggleTool(extraTool())), nil
			}),
		changing("toggle_resource", "Change the resources", "Adds a resource to the list, or removes it again.",
			func(_ context.Context, r *Request, _ map[string]any) (any, *wire.Error) {
				return toggled(r.Session.ToggleResource(textResource("test://extra", "extra", "Comes and goes."))), nil
			}),
		changing("toggle_prompt", "Change the prompts", "Adds a prompt to the list, or removes it again.",
			func(_ context.Context, r *Request, _ map[string]any) (any, *wire.Error) {
				return toggled(r.Session.TogglePrompt(extraPrompt())), nil
			}),
		changing("update_resource", "Update a resource", "Changes the contents of "+watchedURI+".",
			func(_ context.Context, r *Request, _ map[string]any) (any, *wire.Error) {
				r.Session.touch()
				r.Session.Updated(watchedURI)
				return content(textBlock("updated")), nil
			}),
	}
}

func toggled(added bool) o {
	if added {
		return content(textBlock("added"))
	}
	return content(textBlock("removed"))
}

func extraTool() *Tool {
	return readOnly("extra", "Extra", "Comes and goes.", clone(noArguments).(o), fixed(textBlock("extra")))
}

func extraPrompt() *Prompt {
	return &Prompt{
		Definition: o{"name": "extra", "description": "Comes and goes."},
		Get:        fixedPrompt(textBlock("extra")),
	}
}

func sumTool() *Tool {
	t := readOnly("sum", "Sum", "Adds two numbers and returns structured content.",
		schemaOf(o{
			"a": o{"type": "number", "description": "The first number."},
			"b": o{"type": "number", "description": "The second number."},
		}, "a", "b"),
		func(_ context.Context, _ *Request, arguments map[string]any) (any, *wire.Error) {
			sum := number(arguments["a"]) + number(arguments["b"])
			if math.IsInf(sum, 0) {
				return failure("the sum is too large"), nil
			}
			structured := o{"sum": sum}
			// The same as text, for older clients (server/tools#structured-content).
			return o{"content": a{textBlock(string(jsonOf(structured)))}, "structuredContent": structured}, nil
		})
	t.Definition["outputSchema"] = schemaOf(o{"sum": o{"type": "number"}}, "sum")
	return t
}

func number(v any) float64 {
	n, _ := v.(json.Number)
	f, err := n.Float64()
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return f
}

func logThrice(_ context.Context, r *Request, _ map[string]any) (any, *wire.Error) {
	for _, text := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
		r.Log("info", "tools", text)
	}
	return content(textBlock("logged")), nil
}

func logAll(_ context.Context, r *Request, _ map[string]any) (any, *wire.Error) {
	for i, level := range levels {
		r.Log(level, "tools", o{"text": "a message of level " + level, "number": i})
	}
	return content(textBlock("logged")), nil
}

func progressThrice(_ context.Context, r *Request, _ map[string]any) (any, *wire.Error) {
	for _, done := range []float64{0, 50, 100} {
		r.Progress(done, 100, fmt.Sprintf("Completed step %g of 100", done))
	}
	return content(textBlock("done")), nil
}

func slow(ctx context.Context, r *Request, arguments map[string]any) (any, *wire.Error) {
	seconds := 2.0
	if v, ok := arguments["seconds"]; ok {
		seconds = number(v)
	}
	const steps = 10
	r.Detach()
	for step := range steps {
		r.Progress(float64(step), steps, fmt.Sprintf("Step %d of %d", step, steps))
		if err := r.Sleep(ctx, time.Duration(seconds*float64(time.Second)/steps)); err != nil {
			return failure("cancelled"), nil
		}
	}
	r.Progress(steps, steps, "Done")
	return content(textBlock("done")), nil
}

// ask sends the client a request that needs a capability, and passes the result on.
// Without the capability, or with an error, the tool fails.
func ask(ctx context.Context, r *Request, capability, method string, params o, use func(result any) (o, error)) (any,
	*wire.Error) {
	s := r.Session
	if !s.Server.behaviour.IgnoreCapabilities {
		if !s.ClientHas(capability) {
			return failure("The client does not support " + capability), nil
		}
		if !s.Initialized() {
			return failure("The client has not finished the initialization"), nil
		}
	}
	var result any
	var err error
	if method == "roots/list" {
		result, err = r.Roots(ctx)
	} else {
		result, err = r.Call(ctx, method, params)
	}
	if err != nil {
		return failure(oneLine(err.Error())), nil
	}
	used, err := use(result)
	if err != nil {
		return failure("The client's answer to " + method + " is not valid: " + oneLine(err.Error())), nil
	}
	return used, nil
}

func sample(ctx context.Context, r *Request, arguments map[string]any) (any, *wire.Error) {
	params := o{
		"messages":     a{o{"role": "user", "content": textBlock(member(arguments, "prompt"))}},
		"systemPrompt": "Answer in one sentence.", "includeContext": "none",
		"maxTokens": 100, "temperature": 0.7, "stopSequences": a{"\n\n"},
		"modelPreferences": o{
			"hints": a{o{"name": "small"}}, "costPriority": 0.8, "speedPriority": 1.0, "intelligencePriority": 0.25,
		},
		"metadata": o{"purpose": "test"},
		"_meta":    o{"progressToken": r.Session.newToken()},
	}
	return ask(ctx, r, "sampling", "sampling/createMessage", params, func(result any) (o, error) {
		block, _ := wire.At(result, "content").(o)
		role, _ := wire.At(result, "role").(string)
		model, _ := wire.At(result, "model").(string)
		if role != "user" && role != "assistant" || model == "" {
			return nil, errors.New("role or model is missing")
		}
		switch member(block, "type") {
		case "text":
			answer, ok := block["text"].(string)
			if !ok {
				return nil, errors.New("the text is missing")
			}
			return content(textBlock("LLM response: " + answer)), nil
		case "image", "audio":
			data, err := base64.StdEncoding.DecodeString(member(block, "data"))
			if err != nil || member(block, "mimeType") == "" {
				return nil, errors.New("the media block lacks valid data or a mimeType")
			}
			return content(textBlock(fmt.Sprintf("LLM response: %d bytes of %s", len(data), member(block, "type")))),
				nil
		}
		return nil, errors.New("the content is not text, image or audio")
	})
}

func elicit(ctx context.Context, r *Request, arguments map[string]any) (any, *wire.Error) {
	schema := schemaOf(o{
		"username": o{"type": "string", "title": "Name", "description": "How you want to be called", "minLength": 1,
			"maxLength": 100},
		"email": o{"type": "string", "title": "Address", "description": "Where you can be reached", "format": "email"},
		"age":   o{"type": "integer", "title": "Age", "minimum": 0, "maximum": 150},
		"rating": o{"type": "number", "title": "Rating", "description": "How much you like this", "minimum": 0,
			"maximum": 5},
		"news": o{"type": "boolean", "title": "News", "description": "Whether you want to hear more", "default": false},
		"colour": o{
			"type": "string", "title": "Colour", "description": "The one that you like best",
			"enum": a{"red", "green", "blue"}, "enumNames": a{"Red", "Green", "Blue"},
		},
	}, "username", "email")
	params := o{
		"message": member(arguments, "message"), "requestedSchema": schema,
		"_meta": o{"progressToken": r.Session.newToken()},
	}
	return ask(ctx, r, "elicitation", "elicitation/create", params, func(result any) (o, error) {
		switch action := wire.At(result, "action"); action {
		case "accept":
			given, ok := wire.At(result, "content").(o)
			if !ok {
				return nil, errors.New("the content is missing")
			}
			if fault := misfit(compile(schema), given); fault != "" {
				return nil, errors.New("the content does not fit the requested schema: " + fault)
			}
			// Formats are annotations to a JSON Schema, but not to an elicitation
			// (client/elicitation#supported-schema-types).
			if address, err := mail.ParseAddress(member(given, "email")); err != nil || address.Name != "" {
				return nil, errors.New("the content does not fit the requested schema: /email is not an address")
			}
			return content(textBlock("User response: accept, " + string(jsonOf(given)))), nil
		case "decline", "cancel":
			return content(textBlock("User response: " + action.(string))), nil
		default:
			return nil, fmt.Errorf("the action is %s", wire.Show(action))
		}
	})
}

func pingClient(ctx context.Context, r *Request, _ map[string]any) (any, *wire.Error) {
	if _, err := r.Call(ctx, "ping", nil); err != nil {
		return failure("The client does not answer: " + oneLine(err.Error())), nil
	}
	return content(textBlock("The client is there.")), nil
}

func listRoots(ctx context.Context, r *Request, _ map[string]any) (any, *wire.Error) {
	return ask(ctx, r, "roots", "roots/list", nil, func(result any) (o, error) {
		roots, ok := wire.At(result, "roots").([]any)
		if !ok {
			return nil, errors.New("roots is missing")
		}
		uris := make([]string, 0, len(roots))
		for _, root := range roots {
			uri, ok := wire.At(root, "uri").(string)
			if !ok || !strings.HasPrefix(uri, "file://") {
				return nil, errors.New("the URI of a root is not a file URI")
			}
			uris = append(uris, uri)
		}
		return content(textBlock(fmt.Sprintf("%d roots: %s", len(uris), strings.Join(uris, " ")))), nil
	})
}

func textResource(uri, name, text string) *Resource {
	return &Resource{
		Definition: o{"uri": uri, "name": name, "title": title(name), "mimeType": "text/plain", "size": len(text)},
		Read: func(context.Context, *Request) ([]any, *wire.Error) {
			return a{o{"uri": uri, "mimeType": "text/plain", "text": text}}, nil
		},
	}
}

// title makes a readable title of a name.
func title(name string) string {
	words := strings.ReplaceAll(name, "-", " ")
	return strings.ToUpper(words[:1]) + words[1:]
}

// watchedKey is the key under which a session counts the versions of the
// watched resource.
type watchedKey struct{}

func (s *Session) watched() *int { return s.Value(watchedKey{}, func() any { return new(int) }).(*int) }

func (s *Session) touch() {
	n := s.watched()
	s.mu.Lock()
	defer s.mu.Unlock()
	*n++
}

func defaultResources() []*Resource {
	static := textResource("test://static-text", "static-text", "This is the content of the static text resource.")
	static.Definition["description"] = "A text that never changes."
	static.Definition["annotations"] = o{
		"audience": a{"user", "assistant"}, "priority": 0.8, "lastModified": "2025-06-18T09:00:00Z",
	}
	binary := &Resource{
		Definition: o{
			"uri": "test://static-binary", "name": "static-binary", "title": "Static binary", "mimeType": "image/png",
			"description": "An image that never changes.", "size": len(pixel),
		},
		Read: func(context.Context, *Request) ([]any, *wire.Error) {
			return a{o{
				"uri": "test://static-binary", "mimeType": "image/png",
				"blob": base64.StdEncoding.EncodeToString(pixel),
			}}, nil
		},
	}
	watched := &Resource{
		Definition: o{
			"uri": watchedURI, "name": "watched-resource", "title": "Watched resource", "mimeType": "text/plain",
			"description": "A text that the tool update_resource changes.",
		},
		Read: func(_ context.Context, r *Request) ([]any, *wire.Error) {
			n := r.Session.watched()
			r.Session.mu.Lock()
			defer r.Session.mu.Unlock()
			return a{o{"uri": watchedURI, "mimeType": "text/plain",
				"text": fmt.Sprintf("Version %d of the watched resource.", *n)}}, nil
		},
	}
	several := &Resource{
		Definition: o{"uri": "test://folder/", "name": "folder", "title": "Folder", "mimeType": "text/plain"},
		Read: func(context.Context, *Request) ([]any, *wire.Error) {
			return a{
				o{"uri": "test://folder/one", "mimeType": "text/plain", "text": "The first part."},
				o{"uri": "test://folder/two", "mimeType": "text/plain", "text": "The second part."},
			}, nil
		},
	}
	return []*Resource{
		static, binary, watched, several,
		textResource("test://unicode", "unicode", "Grüße, 世界 🌍"),
		textResource("test://empty", "empty", ""),
	}
}

func defaultTemplates() []*Template {
	ids := make([]string, 150)
	for i := range ids {
		ids[i] = strconv.Itoa(i + 1)
	}
	data := template("test://template/", "/data", "id", "application/json", startingWith(ids...),
		func(uri, id string) string { return string(jsonOf(o{"id": id, "data": "Data for id " + id})) })
	data.Definition["annotations"] = o{"audience": a{"assistant"}, "priority": 0.5}
	templates := []*Template{data}
	for _, kind := range []string{"notes", "letters", "lists", "drafts"} {
		templates = append(templates, template("test://"+kind+"/", "", "name", "text/plain",
			startingWith("first", "second", "third"),
			func(uri, name string) string { return "The text " + name + " among the " + kind + "." }))
	}
	return templates
}

// template returns a template with one variable between two fixed parts. The
// variable takes letters, digits and hyphens.
func template(before, after, variable, mimeType string, completer Completer,
	text func(uri, value string) string) *Template {
	name := strings.Trim(strings.TrimPrefix(before, "test://"), "/")
	return &Template{
		Definition: o{
			"uriTemplate": before + "{" + variable + "}" + after, "name": name, "title": title(name),
			"description": "One text for each " + variable + ".", "mimeType": mimeType,
		},
		Match: func(uri string) (map[string]string, bool) {
			value, ok := strings.CutPrefix(uri, before)
			if !ok {
				return nil, false
			}
			value, ok = strings.CutSuffix(value, after)
			if !ok || value == "" || len(value) > 64 || strings.ContainsFunc(value, func(c rune) bool {
				return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-'
			}) {
				return nil, false
			}
			return map[string]string{variable: value}, true
		},
		Read: func(_ context.Context, _ *Request, variables map[string]string) ([]any, *wire.Error) {
			uri := before + variables[variable] + after
			return a{o{"uri": uri, "mimeType": mimeType, "text": text(uri, variables[variable])}}, nil
		},
		Complete: map[string]Completer{variable: completer},
	}
}

type get = func(ctx context.Context, r *Request, arguments map[string]string) ([]any, *wire.Error)

func fixedPrompt(blocks ...any) get {
	return func(context.Context, *Request, map[string]string) ([]any, *wire.Error) {
		var messages []any
		for _, block := range blocks {
			messages = append(messages, o{"role": "user", "content": clone(block)})
		}
		return messages, nil
	}
}

func argument(name, description string, required bool) o {
	return o{"name": name, "title": title(name), "description": description, "required": required}
}

var cities = map[string][]string{
	"France": {"Lyon", "Marseille", "Paris"},
	"Japan":  {"Kyoto", "Osaka", "Tokyo"},
	"Peru":   {"Arequipa", "Cusco", "Lima"},
}

func defaultPrompts() []*Prompt { return append(promptsWithContent(), travelPrompt()) }

// promptsWithContent are the prompts of the official tool, and one for each further type of content.
func promptsWithContent() []*Prompt {
	return []*Prompt{
		{
			Definition: o{"name": "test_simple_prompt", "title": "Simple prompt",
				"description": "A prompt without arguments."},
			Get: fixedPrompt(textBlock("This is a simple prompt for testing.")),
		},
		{
			Definition: o{
				"name": "test_prompt_with_arguments", "title": "Prompt with arguments",
				"description": "A prompt with two arguments.",
				"arguments": a{argument("arg1", "The first argument", true),
					argument("arg2", "The second argument", true)},
			},
			Get: func(_ context.Context, _ *Request, arguments map[string]string) ([]any, *wire.Error) {
				line := fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", arguments["arg1"], arguments["arg2"])
				return a{o{"role": "user", "content": textBlock(line)}}, nil
			},
			Complete: map[string]Completer{
				"arg1": startingWith("test1", "test2", "testing", "other"),
				"arg2": startingWith("value1", "value2"),
			},
		},
		embeddingPrompt(),
		{
			Definition: o{"name": "test_prompt_with_image", "title": "Prompt with an image",
				"description": "A prompt with an image."},
			Get: fixedPrompt(imageBlock(), textBlock("Please analyze the image above.")),
		},
		{
			Definition: o{"name": "prompt_with_audio", "title": "Prompt with audio",
				"description": "A prompt with a moment of silence."},
			Get: fixedPrompt(audioBlock(), textBlock("What do you hear?")),
		},
		{
			Definition: o{"name": "prompt_with_resource_link",
				"description": "A prompt with a link to a resource, and an answer."},
			Get: func(context.Context, *Request, map[string]string) ([]any, *wire.Error) {
				return a{
					o{"role": "user", "content": o{
						"type": "resource_link", "uri": "test://static-text", "name": "static-text",
						"mimeType": "text/plain",
					}},
					o{"role": "assistant", "content": o{
						"type": "text", "text": "I have read it.",
						"annotations": o{"audience": a{"user"}, "priority": 0.2},
					}},
				}, nil
			},
		},
	}
}

// embeddingPrompt returns a prompt that embeds the resource of which it is given the URI.
func embeddingPrompt() *Prompt {
	return &Prompt{
		Definition: o{
			"name": "test_prompt_with_embedded_resource", "title": "Prompt with a resource",
			"description": "A prompt that embeds a resource.",
			"arguments":   a{argument("resourceUri", "The URI of the resource to embed", true)},
		},
		Get: func(_ context.Context, _ *Request, arguments map[string]string) ([]any, *wire.Error) {
			uri := arguments["resourceUri"]
			if !isURI(uri) {
				return nil, invalid("resourceUri is not a URI")
			}
			return a{
				o{"role": "user", "content": embeddedBlock(uri)},
				o{"role": "user", "content": textBlock("Please process the embedded resource above.")},
			}, nil
		},
		Complete: map[string]Completer{"resourceUri": startingWith("test://static-binary", "test://static-text",
			watchedURI)},
	}
}

// travelPrompt returns a prompt with arguments that complete each other.
func travelPrompt() *Prompt {
	countries := []string{"France", "Japan", "Peru"}
	return &Prompt{
		Definition: o{
			"name": "travel", "title": "Travel", "description": "A prompt whose arguments complete each other.",
			"arguments": a{argument("country", "Where to go", true), argument("city", "Where to stay", false)},
		},
		Get: func(_ context.Context, _ *Request, arguments map[string]string) ([]any, *wire.Error) {
			where := arguments["country"]
			if city := arguments["city"]; city != "" {
				where = city + ", " + where
			}
			return a{o{"role": "user", "content": textBlock("Plan a journey to " + where + ".")}}, nil
		},
		Complete: map[string]Completer{
			"country": startingWith(countries...),
			"city": func(typed string, resolved map[string]string) []string {
				if fit, ok := cities[resolved["country"]]; ok {
					return startingWith(fit...)(typed, nil)
				}
				var all []string
				for _, country := range countries {
					all = append(all, cities[country]...)
				}
				return startingWith(all...)(typed, nil)
			},
		},
	}
}
