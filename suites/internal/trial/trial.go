// Package trial decides whether the findings of an attempt count. An attempt plays a stimulus once: a check of a
// server, or a scenario for a client. Its findings may owe to something else than the subject of the stimulus. A table
// of excuses says what that can be, and one loop plays the stimulus again as the table asks. The package knows neither
// methods nor messages of MCP.
package trial

import "context"

// Excuse is a row of a table of excuses: something that the target may do at any time, or that this side has done. It
// may be the reason for the findings of an attempt of type A.
type Excuse[A any] struct {
	// Name is stable and unique. docs/design.md lists the rows by name.
	Name string
	// Fits returns the reason, as a clause, if the row applies to an attempt; otherwise "". It reads the attempt, and
	// changes nothing.
	Fits func(A) (reason string)
	// Again is how often the stimulus is played again because of the row.
	Again int
	// Ready waits until the stimulus can be played again. It reports false if that takes too long. Nil: it can be
	// played at once.
	Ready func(A) bool
	// Stands says that the row excuses nothing if the stimulus cannot be played again. Otherwise the attempt then tells
	// nothing, for the reason of the row.
	Stands bool
	// Learn takes in what another attempt has shown. Nil: the row learns nothing.
	Learn func(before, after A)
}

// Table holds the excuses for attempts of one party. The first row that fits decides.
type Table[A any] []Excuse[A]

// Settle returns the attempt that counts, and the reason why it tells nothing, or "". It begins with an attempt, and
// plays the stimulus again as long as a row asks for that. play returns the next attempt, or false if there is none.
func (t Table[A]) Settle(ctx context.Context, a A, play func(before A) (after A, ok bool)) (last A, reason string) {
	left := make([]int, len(t))
	for i, x := range t {
		left[i] = x.Again
	}
	for ctx.Err() == nil {
		i, why := t.first(a, left)
		if i < 0 {
			return a, ""
		}
		x := t[i]
		ready := left[i] > 0 && (x.Ready == nil || x.Ready(a))
		left[i]--
		if !ready && x.Stands {
			left[i] = 0
			continue
		}
		if !ready {
			return a, why
		}
		next, ok := play(a)
		if !ok {
			return a, ""
		}
		if x.Learn != nil {
			x.Learn(a, next)
		}
		a = next
	}
	return a, ""
}

// first returns the index of the first row that fits, and its reason. The index is -1 if none fits. A row that stands
// is left out if it does not play the stimulus again.
func (t Table[A]) first(a A, left []int) (i int, reason string) {
	for i, x := range t {
		if x.Stands && left[i] <= 0 {
			continue
		}
		if why := x.Fits(a); why != "" {
			return i, why
		}
	}
	return -1, ""
}

// Names returns the names of the rows, in their order.
func (t Table[A]) Names() (names []string) {
	for _, x := range t {
		names = append(names, x.Name)
	}
	return names
}

// Without returns the table without a row.
func (t Table[A]) Without(name string) (rest Table[A]) {
	for _, x := range t {
		if x.Name != name {
			rest = append(rest, x)
		}
	}
	return rest
}

// When returns a reason if it holds, or "".
func When(holds bool, reason string) string {
	if !holds {
		return ""
	}
	return reason
}
