//go:build !linux

package transport

import (
	"errors"
	"runtime"
)

func sandboxable(Isolation) error {
	return errors.New("a sandbox needs the namespaces of Linux; this is " + runtime.GOOS +
		": run mcpconform in a container instead")
}

func limitable() error {
	return errors.New("limits of memory and processes need Linux; this is " + runtime.GOOS +
		": run mcpconform in a container that has them")
}

func (*osProcess) keepWithin(Isolation) {}
