package client

import (
	"sync"
	"time"
)

// Pace is what is known of how fast a peer answers requests without params, which
// mean the same each time. The sessions that have it learn together. The zero value
// knows nothing; it is safe for concurrent use.
type Pace struct {
	mu      sync.Mutex
	slowest map[string]time.Duration // by method
	late    time.Duration            // how late one of our own timers was at most
	start   time.Duration            // how long a new process took to its first answer at most
}

// Start returns how long a new process took to its first answer at most.
func (p *Pace) Start() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.start
}

// started notes how long a new process took to its first answer.
func (p *Pace) started(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.start = max(p.start, took)
}

// A learned limit is a multiple of the slowest answer, and never short: a process
// may have to wait for a processor. Our own timers show how long that can take.
const (
	paceFloor = 500 * time.Millisecond
	paceTimes = 4
	lateTimes = 20
	// Messages that a peer sends of its own accord say less about its pace, so a shorter wait has to do for them.
	reactionTimes = 2
)

// saw notes how long an answer took.
func (p *Pace) saw(method string, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slowest == nil {
		p.slowest = make(map[string]time.Duration)
	}
	p.slowest[method] = max(p.slowest[method], took, 1) // a clock may not have moved
}

// overslept notes how late one of our own timers was.
func (p *Pace) overslept(late time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = max(p.late, late)
}

// limit returns how long the answer to a method may take, and how long the slowest one
// took. Nothing is known of a method that was not answered yet.
func (p *Pace) limit(method string) (limit, slowest time.Duration, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	slowest, known = p.slowest[method]
	return paceFloor + paceTimes*slowest + lateTimes*p.late, slowest, known
}

// Reaction returns how long a peer that is usually done at once may take on this machine to
// do something of its own accord: that has no request, and may wait behind what has one.
func (p *Pace) Reaction(usual time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	slowest := time.Duration(0)
	for _, took := range p.slowest {
		slowest = max(slowest, took)
	}
	return usual + reactionTimes*slowest + lateTimes*p.late
}
