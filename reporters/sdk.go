package reporters

import (
	"fmt"
	"slices"

	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/result"
)

// ofSDK reports whether a requirement is broken by a known fault of the target's SDK.
func (v *view) ofSDK(q *result.Requirement) bool {
	return q.SDK != nil && slices.Contains([]outcome{outFail, outWarn, outDisputed}, v.outcome(q))
}

// yours returns those of some requirements that are not broken by the target's SDK.
func (v *view) yours(list []*result.Requirement) []*result.Requirement {
	return slices.DeleteFunc(slices.Clone(list), v.ofSDK)
}

// otherSDK reports whether the target is built on another SDK than a fault is known of, or on a
// version without the fault.
func (v *view) otherSDK(f schema.KnownFault) bool {
	s := v.Target.SDK
	if s == nil || !slices.ContainsFunc(v.Protocol().SDKs(), func(o schema.SDK) bool { return o.Name == f.SDK }) {
		return false
	}
	return s.Name != f.SDK || f.MendedIn(s.Version)
}

// sdkGroup holds requirements that one known fault of the SDK breaks.
type sdkGroup struct {
	*result.SDKFault
	requirements []*result.Requirement
}

// sdkGroups returns what the SDK of the target breaks, by its faults: the gravest first.
func (v *view) sdkGroups() []*sdkGroup {
	var groups []*sdkGroup
	for _, o := range []outcome{outFail, outWarn, outDisputed} {
		for _, q := range v.having(o) {
			if !v.ofSDK(q) {
				continue
			}
			i := slices.IndexFunc(groups, func(g *sdkGroup) bool { return g.ID == q.SDK.ID })
			if i < 0 {
				i = len(groups)
				groups = append(groups, &sdkGroup{SDKFault: q.SDK})
			}
			groups[i].requirements = append(groups[i].requirements, q)
		}
	}
	return groups
}

// sdkName is the SDK of the target, with its version if that is known.
func (v *view) sdkName() string {
	if v.Target.SDK == nil {
		return "the SDK"
	}
	name := line(v.Target.SDK.Name, limitName)
	if v.Target.SDK.Version != "" {
		name += " " + line(v.Target.SDK.Version, limitName)
	}
	return name
}

// sdkTitle says how many findings are of the SDK, and how many are not.
func (v *view) sdkTitle() (title string, ok bool) {
	n := 0
	for _, g := range v.sdkGroups() {
		n += len(g.requirements)
	}
	own := 0
	for _, o := range []outcome{outFail, outWarn, outDisputed} {
		own += len(v.yours(v.having(o)))
	}
	return fmt.Sprintf("%d of %s, known upstream (yours: %d)", n, v.sdkName(), own), n > 0
}

// knownUpstream says of a requirement that the SDK breaks it.
func (v *view) knownUpstream(q *result.Requirement) string {
	return fmt.Sprintf("known of %s (%s): %s", v.sdkName(), mended(q.SDK), line(q.SDK.Thread, limitMessage))
}

// sdkHelp says what can be done about findings that an SDK causes.
const sdkHelp = "--expect-sdk (expectSDK in mcpconform.yaml) does not count them; it fails once there are none."

// mended says in which version of the SDK a fault is mended.
func mended(f *result.SDKFault) string {
	words := line(f.Versions, limitName)
	if f.Mended != "" {
		return words + ", mended in " + line(f.Mended, limitName)
	}
	return words + ", not mended yet"
}
