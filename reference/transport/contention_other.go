//go:build !linux

package transport

import "time"

// Only Linux tells how long something waited for a processor.
func contention() (time.Duration, bool) { return 0, false }

func (p *osProcess) queued() time.Duration { return 0 }
