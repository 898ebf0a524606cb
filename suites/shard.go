package suites

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/suites/internal/ledger"
	"github.com/mcpconform/mcpconform/suites/internal/tree"
	"github.com/mcpconform/mcpconform/suites/result"
)

// shard returns the specs of this shard, of those that a filter leaves. The same options give the same shards: the
// units, sorted by name, go round the shards.
func (r *run) shard(specs []*tree.Spec, filter string) ([]*tree.Spec, error) {
	if r.Shards == 0 && r.Shard == 0 {
		return specs, nil
	}
	if r.Shard < 1 || r.Shard > r.Shards {
		return nil, fmt.Errorf("there is no shard %d of %d", r.Shard, r.Shards)
	}
	matches, err := tree.ParseFilter(filter)
	if err != nil {
		return nil, err
	}
	var names, units []string
	for _, s := range specs {
		if !matches(s.Labels) {
			continue
		}
		names = append(names, s.Name)
		if !s.Everywhere && !slices.Contains(units, s.Unit) {
			units = append(units, s.Unit)
		}
	}
	slices.Sort(names)
	slices.Sort(units)
	plan := sha256.Sum256([]byte(strings.Join(names, "\n")))
	r.part = &result.Shard{Index: r.Shard, Of: r.Shards, Plan: hex.EncodeToString(plan[:])}
	r.ledger.Evidence.Elsewhere = make(map[string]bool)
	var ours []*tree.Spec
	tried := r.ledger.Evidence.Elsewhere
	for _, s := range specs {
		if s.Everywhere || slices.Index(units, s.Unit)%r.Shards == r.Shard-1 {
			ours = append(ours, s)
		} else if matches(s.Labels) {
			for _, id := range s.Requirements {
				tried[id] = true
			}
		}
	}
	for _, s := range ours {
		if !matches(s.Labels) {
			continue // the stimulus runs it in any case, or not at all
		}
		for _, id := range s.Requirements {
			delete(tried, id)
		}
	}
	return ours, nil
}

// Merge makes the results of a whole run from those of its shards. If some are missing
// the run is incomplete and says which. The error says why they do not belong together.
func Merge(shards []*result.Run) (*result.Run, error) { return ledger.Merge(shards, time.Now()) }
