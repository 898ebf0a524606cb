package schema

import (
	"encoding/json"
	"fmt"
	"sync"
)

// embedded returns a function that reads a list of this revision at its first call.
func embedded[T any](what string, data []byte) func() ([]T, error) {
	return sync.OnceValues(func() ([]T, error) {
		var list []T
		if err := json.Unmarshal(data, &list); err != nil {
			return nil, fmt.Errorf("%s %s: %w", what, Version, err)
		}
		return list, nil
	})
}
