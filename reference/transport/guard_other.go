//go:build !unix

package transport

// Only Unix has process groups and a shell that can end them.
type guard struct{}

var guarding guard

func (*guard) launches(*osProcess) {}

func (*guard) launched(*osProcess) {}

func (*guard) ended(*osProcess) {}
