package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// Size is a number of bytes, in a file or as the value of a flag: 1048576, 1024K or 1M.
type Size int64

// String writes the number with the largest unit that divides it.
func (s *Size) String() string {
	n := int64(*s)
	if n == 0 {
		return ""
	}
	for i := len(units) - 1; i >= 0; i-- {
		if unit := int64(1) << (10 * (i + 1)); n%unit == 0 {
			return strconv.FormatInt(n/unit, 10) + units[i:i+1]
		}
	}
	return strconv.FormatInt(n, 10)
}

// units from 1024 bytes on.
const units = "KMGT"

// Type names the value in the usage.
func (s *Size) Type() string { return "SIZE" }

// Set reads the value of a flag.
func (s *Size) Set(text string) error {
	digits, factor := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(text), "B"), "I"), int64(1)
	if i := strings.IndexByte(units, last(digits)); i >= 0 && digits != "" {
		digits, factor = digits[:len(digits)-1], 1<<(10*(i+1))
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/factor {
		return fmt.Errorf("%q is not a size; it takes a number of bytes, or one with K, M or G, such as 512M", text)
	}
	*s = Size(n * factor)
	return nil
}

func last(text string) byte {
	if text == "" {
		return 0
	}
	return text[len(text)-1]
}

// UnmarshalYAML reads a number or a text.
func (s *Size) UnmarshalYAML(read func(any) error) error {
	var value any
	if err := read(&value); err != nil {
		return err
	}
	return s.Set(fmt.Sprint(value))
}

var _ yaml.InterfaceUnmarshaler = (*Size)(nil)
