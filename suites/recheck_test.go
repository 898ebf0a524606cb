package suites_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/result"
)

// TestRecheckedOffers: however a server gives its lists, the trace shows the same offer as
// the run saw.
func TestRecheckedOffers(t *testing.T) {
	brief.WholeRuns(t)
	all := []string{result.OfferPrompts, result.OfferTemplates, result.OfferResources, result.OfferTools}
	for i, tt := range []struct {
		fault      string
		incomplete []string
	}{
		{"pagination.cursor-loops", []string{result.OfferPrompts}},
		{"lifecycle.never-ready", all}, // an answer is awaited in vain
		{"", nil},
		{"tools.list-grows", nil},
		{"tools.list-refused", []string{result.OfferTools}},
		{"tools.second-page-refused", nil},
		{"pagination.next-cursor-number", nil},
	} {
		over := []string{transport.NameStdio, transport.NameHTTP}
		switch {
		case testing.Short() && i >= 2:
			over = nil
		case testing.Short():
			over = over[:1]
		default:
			over = brief.Sample(t, over, 2)
		}
		for _, over := range over {
			t.Run(over+"/"+tt.fault, inVirtualTime(func(t *testing.T) {
				o := serverOptions()
				if f, ok := mockserver.Find(tt.fault); ok {
					f.Apply(&o)
				} else if tt.fault != "" {
					t.Fatal("there is no such fault")
				}
				run, trace, err := traced(t.Context(), 0, over, o)
				if err != nil {
					t.Fatal(err)
				}
				if run.Offer == nil {
					t.Fatal("there is no offer")
				}
				if got := slices.Sorted(slices.Values(run.Offer.Incomplete)); !slices.Equal(got, tt.incomplete) {
					t.Errorf("what the run could not read are %q, not %q", got, tt.incomplete)
				}
				var file bytes.Buffer
				if _, err := trace.WriteTo(&file); err != nil {
					t.Fatal(err)
				}
				read, err := wire.ReadTrace(&file, wire.DefaultLimits)
				if err != nil {
					t.Fatal(err)
				}
				found, err := suites.Recheck(throughAFile(t, run), read)
				if err != nil || len(found.Discrepancies) > 0 || slices.Contains(found.Unknown, "offer") {
					t.Errorf("%v: %+v, unknown are %q", err, found.Discrepancies, found.Unknown)
				}
			}))
		}
	}
}
