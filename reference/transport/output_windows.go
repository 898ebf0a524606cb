package transport

import "os"

// readNow is not called where pipes have no deadlines.
func readNow(*os.File, []byte) (n int, held bool, err error) { return 0, true, nil }
