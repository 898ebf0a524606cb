package schema_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/internal/source"
)

const dir = "2025-06-18"

func catalogue(t testing.TB) []schema.Requirement {
	t.Helper()
	list := schema.Default().Catalogue()
	if len(list) == 0 {
		t.Fatal("the catalogue is empty")
	}
	return list
}

// The embedded JSON is what "go generate ./schema" makes of the YAML.
func TestGeneratedCatalogueIsCurrent(t *testing.T) {
	requirements, err := source.Requirements(dir)
	if err != nil {
		t.Fatal(err)
	}
	want, err := source.Generate(requirements)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(dir + "/" + source.GeneratedFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is not current: run go generate ./schema", source.GeneratedFile)
	}
	if diff := cmp.Diff(requirements, catalogue(t)); diff != "" {
		t.Errorf("the catalogue differs from its source (-want +got):\n%s", diff)
	}
}

// The constants are what "go generate ./schema" makes of the catalogues.
func TestConstantsAreCurrent(t *testing.T) {
	var catalogues [][]schema.Requirement
	for _, version := range schema.Known() {
		r, err := schema.For(version)
		if err != nil {
			t.Fatal(err)
		}
		catalogues = append(catalogues, r.Catalogue())
	}
	want, err := source.DescribeIDs(catalogues...)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(source.IDsFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is not current: run go generate ./schema", source.IDsFile)
	}
}

var pages = []string{
	"index", "architecture/index", "changelog", "schema",
	"basic/index", "basic/lifecycle", "basic/transports", "basic/authorization", "basic/security_best_practices",
	"basic/utilities/cancellation", "basic/utilities/ping", "basic/utilities/progress",
	"client/roots", "client/sampling", "client/elicitation",
	"server/index", "server/prompts", "server/resources", "server/tools",
	"server/utilities/completion", "server/utilities/logging", "server/utilities/pagination",
	"2024-11-05/basic/transports",
}

var (
	idPattern         = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)+$`)
	keywordPattern    = regexp.MustCompile(`\b(MUST|SHALL|REQUIRED|SHOULD|RECOMMENDED|MAY|OPTIONAL)\b`)
	capabilityPattern = regexp.MustCompile(`^(server|client)\.[A-Za-z]+(\.[A-Za-z]+)?$`)
)

var bases = []schema.Basis{schema.ByKeyword, schema.BySchema, schema.ByStandard, schema.ByStatement, schema.ByExample, schema.ByImplication}

// faults returns what is wrong with one entry.
func faults(r schema.Requirement) []string {
	var list []string
	check := func(ok bool, fault string) {
		if !ok {
			list = append(list, fault)
		}
	}
	sentence := func(s string) bool { return s == strings.TrimSpace(s) && strings.HasSuffix(s, ".") }
	check(idPattern.MatchString(r.ID), "the id is malformed")
	check(slices.Contains([]schema.Level{schema.Must, schema.MustNot, schema.Should, schema.ShouldNot, schema.May}, r.Level), "the level is unknown")
	check(slices.Contains(bases, r.Basis), "the basis is unknown")
	check((r.Standard != "") == (r.Basis == schema.ByStandard), "it names a standard without resting on one, or the other way round")
	check(r.Position == "" || r.Basis == schema.ByStatement, "a position defends what needs none")
	check(r.Basis != schema.ByKeyword || keywordPattern.MatchString(r.Text), "it rests on a keyword that its text does not show")
	switch must := r.Level.AsStrongAs(schema.Must); r.Basis {
	case schema.ByStatement:
		check(!must || r.Position != "", "no position says why a plain statement is "+string(r.Level))
	case schema.ByExample, schema.ByImplication:
		check(!must, "what only an example shows, or the text implies, is "+string(r.Level))
	}
	for _, s := range append([]schema.Source{r.Place()}, r.Sources...) {
		check(s.Lead == strings.TrimSuffix(s.Lead, "-"), "the hyphen after what leads to its text is that of a URL")
		for _, term := range append(strings.Split(s.Text, " … "), s.Lead) {
			check(term == strings.TrimSpace(term) && len(strings.Fields(term)) <= 8, "its text has more words than it needs to be found")
		}
	}
	check(r.Position == "" || slices.ContainsFunc(schema.Default().PositionsFor(r.ID), func(p schema.Position) bool { return p.ID == r.Position }), "its position does not name it")
	check(slices.Contains([]schema.Party{schema.Server, schema.Client, schema.Both, schema.Host, schema.AuthorizationServer}, r.Party), "the party is unknown")
	for _, s := range append([]schema.Source{{Page: r.Page, Anchor: r.Anchor}}, r.Sources...) {
		check(slices.Contains(pages, s.Page), "the page "+s.Page+" is unknown")
		check(!strings.HasPrefix(s.Anchor, "#") && s.Anchor == strings.ToLower(s.Anchor), "the anchor "+s.Anchor+" is malformed")
	}
	for i, transport := range r.Transports {
		check(slices.Contains([]string{"stdio", "http", "sse"}, transport), "the transport "+transport+" is unknown")
		check(!slices.Contains(r.Transports[:i], transport), "the transport "+transport+" occurs twice")
	}
	check(r.Capability == "" || capabilityPattern.MatchString(r.Capability), "the capability is malformed")
	check(sentence(r.Summary), "the summary is not a sentence")
	check(utf8.RuneCountInString(r.Summary) <= 200, "the summary is longer than 200 characters")
	check(strings.TrimSpace(r.How) != "", "it does not say how it is tried or why it is not")
	check(!r.Observable || strings.TrimSpace(r.Violation) != "", "it is observable, but does not say what a violation is")
	check(slices.Contains([]schema.Unobserved{schema.Invisible, schema.Tolerated, schema.Untried, schema.Unjudged}, r.Unobserved), "the kind of its reason is unknown")
	check(r.Unobserved == schema.Invisible || !r.Observable && r.Through == nil, "it says that nothing is observed, and it is observed")
	check(r.Unobserved != schema.Tolerated || r.Level == schema.May, "it is tolerated without being a permission")
	check(!r.Observable || r.Through == nil, "it is observable, and yet others show it")
	for _, id := range r.Through {
		through, ok := schema.Default().Lookup(id)
		check(ok && through.Observable, "it shows through "+id+", which is not an observable requirement")
	}
	return list
}

func TestCatalogue(t *testing.T) {
	ids := map[string]bool{}
	for _, r := range catalogue(t) {
		if ids[r.ID] {
			t.Errorf("%s occurs twice", r.ID)
		}
		ids[r.ID] = true
		for _, fault := range faults(r) {
			t.Errorf("%s: %s", r.ID, fault)
		}
	}
}

// The checks of entries notice what they are for.
func TestFaults(t *testing.T) {
	good := schema.Requirement{
		ID: "tools.list.unique", Level: schema.Must, Basis: schema.ByKeyword, Party: schema.Server, Page: "server/tools", Anchor: "listing-tools", Text: "It MUST hold",
		Summary: "It holds.", Observable: true, How: "Try it.", Violation: "It does not hold.",
	}
	if got := faults(good); got != nil {
		t.Fatalf("a good entry has faults: %v", got)
	}
	for name, spoil := range map[string]func(*schema.Requirement){
		"id":              func(r *schema.Requirement) { r.ID = "Tools.list" },
		"id of one part":  func(r *schema.Requirement) { r.ID = "tools" },
		"level":           func(r *schema.Requirement) { r.Level = "must" },
		"basis":           func(r *schema.Requirement) { r.Basis = "guess" },
		"no place":        func(r *schema.Requirement) { r.Text = "" },
		"no keyword":      func(r *schema.Requirement) { r.Text = "It … hold" },
		"long text":       func(r *schema.Requirement) { r.Text = "It MUST … " + strings.Repeat("a ", 8) + "a" },
		"plain statement": func(r *schema.Requirement) { r.Basis = schema.ByStatement },
		"example":         func(r *schema.Requirement) { r.Basis = schema.ByExample },
		"implied":         func(r *schema.Requirement) { r.Level, r.Basis = schema.MustNot, schema.ByImplication },
		"no standard":     func(r *schema.Requirement) { r.Basis = schema.ByStandard },
		"standard":        func(r *schema.Requirement) { r.Standard = "RFC 9110, section 15.5.6" },
		"position": func(r *schema.Requirement) {
			r.Level, r.Basis, r.Position = schema.Should, schema.ByStatement, "no-such"
		},
		"party":            func(r *schema.Requirement) { r.Party = "user" },
		"page":             func(r *schema.Requirement) { r.Page = "server/tool" },
		"source":           func(r *schema.Requirement) { r.Sources = []schema.Source{{Page: "x"}} },
		"anchor":           func(r *schema.Requirement) { r.Anchor = "#Listing" },
		"transport":        func(r *schema.Requirement) { r.Transports = []string{"tcp"} },
		"transports twice": func(r *schema.Requirement) { r.Transports = []string{"http", "http"} },
		"capability":       func(r *schema.Requirement) { r.Capability = "tools" },
		"no period":        func(r *schema.Requirement) { r.Summary = "It holds" },
		"too long":         func(r *schema.Requirement) { r.Summary = strings.Repeat("long ", 50) + "." },
		"how":              func(r *schema.Requirement) { r.How = " " },
		"violation":        func(r *schema.Requirement) { r.Violation = "" },
		"through":          func(r *schema.Requirement) { r.Through = []string{"base.jsonrpc.version"} },
		"through nothing":  func(r *schema.Requirement) { r.Observable, r.Through = false, []string{"no.such"} },
	} {
		bad := good
		spoil(&bad)
		if len(faults(bad)) != 1 {
			t.Errorf("%s: got %v, want one fault", name, faults(bad))
		}
	}
}

func TestStrictYAML(t *testing.T) {
	folder := t.TempDir()
	text := "- id: a.b\n  level: MUST\n  levle: SHOULD\n"
	if err := os.WriteFile(folder+"/"+source.RequirementsFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := source.Requirements(folder)
	if err == nil || !strings.Contains(err.Error(), "3:3") || !strings.Contains(err.Error(), "levle") {
		t.Errorf("got %v, want the unknown key with its line and column", err)
	}
}

func TestLookup(t *testing.T) {
	for _, r := range catalogue(t) {
		got, ok := schema.Default().Lookup(r.ID)
		if diff := cmp.Diff(r, got); !ok || diff != "" {
			t.Errorf("%s: found %v (-want +got):\n%s", r.ID, ok, diff)
		}
	}
	if r, ok := schema.Default().Lookup("lifecycle.no.such"); ok {
		t.Errorf("found %v", r)
	}
}

func TestNearest(t *testing.T) {
	for _, mistyped := range []string{"schema.call-tol-result", "call-tool-result", "Schema.Call-Tool-Result", "schema.calltoolresult"} {
		if got := schema.Default().Nearest(mistyped, 1); !slices.Equal(got, []string{"schema.call-tool-result"}) {
			t.Errorf("%s: got %v", mistyped, got)
		}
	}
	if got := schema.Default().Nearest(strings.Repeat("x.", 1_000_000), 1); len(got) != 1 {
		t.Errorf("got %v", got)
	}
	if got := schema.Default().Nearest("x", 100_000); len(got) != len(catalogue(t)) {
		t.Errorf("got %d ids, want all", len(got))
	}
	if got := schema.Default().Nearest("x", 0); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestURL(t *testing.T) {
	const (
		site   = "https://modelcontextprotocol.io/specification/"
		guides = "https://modelcontextprotocol.io/docs/2025-06-18/tutorials/security/"
	)
	for want, s := range map[string]schema.Source{
		site + "2025-06-18/basic/lifecycle#version-negotiation":     {Page: "basic/lifecycle", Anchor: "version-negotiation"},
		site + "2025-06-18/basic#meta":                              {Page: "basic/index", Anchor: "meta"},
		site + "2025-06-18/basic#meta:~:text=well%2Dknown,a%2C%20b": {Page: "basic/index", Anchor: "meta", Text: "well-known … a, b"},
		site + "2025-06-18/basic#meta:~:text=Above-,It,1%2B1":       {Page: "basic/index", Anchor: "meta", Lead: "Above", Text: "It … 1+1"},
		site + "2025-06-18":                                         {Page: "index"},
		site + "2025-06-18/schema#calltoolresult":                   {Page: "schema", Anchor: "calltoolresult"},
		site + "2024-11-05/basic/transports#http-with-sse":          {Page: "2024-11-05/basic/transports", Anchor: "http-with-sse"},
		site + "2025-06-18/server/utilities/logging#error-handling": {Page: "server/utilities/logging", Anchor: "error-handling"},
		site + "2025-06-18/server/resources#file%3A%2F%2F":          {Page: "server/resources", Anchor: "file://"},
		guides + "security_best_practices#token-passthrough":        {Page: "basic/security_best_practices", Anchor: "token-passthrough"},
		guides + "security_best_practices#mitigation-4:~:text=IDs":  {Page: "basic/security_best_practices", Anchor: "mitigation-3", Text: "IDs"},
	} {
		if got := s.URL(schema.DefaultVersion); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// coverageFaults compares the lines of coverage.yaml with the catalogue and with
// the number of keywords in each section.
func coverageFaults(coverages []source.Coverage, counts []source.Count, known func(id string) bool) []string {
	var list []string
	due := map[source.Keyword]bool{}
	for _, c := range counts {
		for n := range c.Count {
			due[source.Keyword{Page: c.Page, Anchor: c.Anchor, Keyword: c.Keyword, N: n + 1}] = true
		}
	}
	for _, c := range coverages {
		if !due[c.Key()] {
			list = append(list, c.Key().String()+" is covered twice or does not exist")
		}
		delete(due, c.Key())
		if (len(c.IDs) == 0) == (strings.TrimSpace(c.Reason) == "") {
			list = append(list, c.Key().String()+" has not either ids or a reason")
		}
		for _, id := range c.IDs {
			if !known(id) {
				list = append(list, c.Key().String()+" names the unknown "+id)
			}
		}
	}
	for key := range due {
		list = append(list, key.String()+" is not covered")
	}
	slices.Sort(list)
	return list
}

// Each keyword of the specification, counted when reconcile last ran, is
// covered by requirements of the catalogue.
func TestCoverage(t *testing.T) {
	coverages, err := source.Coverages(dir)
	if err != nil {
		t.Fatal(err)
	}
	counts, err := source.Counts(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(catalogue(t)) <= 2 && len(coverages) == 0 {
		t.Skip("the catalogue is not written yet")
	}
	known := func(id string) bool { _, ok := schema.Default().Lookup(id); return ok }
	for _, fault := range coverageFaults(coverages, counts, known) {
		t.Error(fault)
	}
}

func TestOccurrences(t *testing.T) {
	counts, err := source.Counts(dir)
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, c := range counts {
		total += c.Count
		if c.Count < 1 || !slices.Contains(pages, c.Page) {
			t.Errorf("malformed: %v", c)
		}
	}
	// As counted in the specification's text; a change means that it was edited.
	if total != 317 {
		t.Errorf("%d keywords are recorded, want 317", total)
	}
}

// Every anchor that the catalogue names is a heading of its page, and every requirement has
// one, or words that are found above the first heading.
func TestPlacesExist(t *testing.T) {
	headings, err := source.AllHeadings(dir)
	if err != nil {
		t.Fatal(err)
	}
	anchors := make(map[string][]string)
	for _, h := range headings {
		anchors[h.Page] = append(h.Anchors, "")
	}
	for _, r := range catalogue(t) {
		if r.Anchor == "" && r.Text == "" {
			t.Errorf("%s: nothing leads to its place on page %s", r.ID, r.Page)
		}
		for _, place := range append([]schema.Source{r.Place()}, r.Sources...) {
			if !slices.Contains(anchors[place.Page], place.Anchor) {
				t.Errorf("%s: page %s has no heading with the anchor %q", r.ID, place.Page, place.Anchor)
			}
		}
	}
}

func TestCoverageFaults(t *testing.T) {
	counts := []source.Count{{Page: "p", Anchor: "a", Keyword: "MUST", Count: 2}}
	one := source.Coverage{Page: "p", Anchor: "a", Keyword: "MUST", N: 1, IDs: []string{"x.y"}}
	two := source.Coverage{Page: "p", Anchor: "a", Keyword: "MUST", N: 2, Reason: "boilerplate"}
	three, unknown, bare, both := two, one, two, one
	three.N, unknown.IDs, bare.Reason, both.Reason = 3, []string{"?x.y"}, "", "why"
	for _, test := range []struct {
		lines []source.Coverage
		want  []string
	}{
		{[]source.Coverage{one, two}, nil},
		{[]source.Coverage{one}, []string{"p#a MUST 2 is not covered"}},
		{[]source.Coverage{one, two, two}, []string{"p#a MUST 2 is covered twice or does not exist"}},
		{[]source.Coverage{one, two, three}, []string{"p#a MUST 3 is covered twice or does not exist"}},
		{[]source.Coverage{unknown, two}, []string{"p#a MUST 1 names the unknown ?x.y"}},
		{[]source.Coverage{one, bare}, []string{"p#a MUST 2 has not either ids or a reason"}},
		{[]source.Coverage{both, two}, []string{"p#a MUST 1 has not either ids or a reason"}},
	} {
		got := coverageFaults(test.lines, counts, func(id string) bool { return id == "x.y" })
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.lines, diff)
		}
	}
}

// Every message that the revision defines has its entry, bound to its sender.
func TestMessagesHaveRequirements(t *testing.T) {
	if len(catalogue(t)) <= 2 {
		t.Skip("the catalogue is not written yet")
	}
	senders := map[string][]schema.Party{}
	add := func(id string, sender schema.Party) { senders[id] = append(senders[id], sender) }
	for sender, receiver := range map[schema.Party]schema.Party{schema.Client: schema.Server, schema.Server: schema.Client} {
		for _, method := range schema.Default().Methods(sender) {
			def, _ := schema.Default().Request(sender, method)
			add(schema.Default().RequirementID(def), sender)
			add(schema.Default().ResultRequirementID(method), receiver)
		}
		for _, method := range schema.Default().NotificationMethods(sender) {
			def, _ := schema.Default().Notification(sender, method)
			add(schema.Default().RequirementID(def), sender)
		}
	}
	for id, parties := range senders {
		r, ok := schema.Default().Lookup(id)
		if !ok {
			t.Errorf("the catalogue has no %s", id)
			continue
		}
		want := parties[0]
		if len(parties) > 1 {
			want = schema.Both
		}
		if r.Party != want || r.Level != schema.Must || !r.Observable && r.Through == nil {
			t.Errorf("%s is %s for %s, observable %v; want an observable MUST for %s", id, r.Level, r.Party, r.Observable, want)
		}
	}
}
