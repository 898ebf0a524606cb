package values

import "testing"

func BenchmarkRealistic(b *testing.B) {
	for _, call := range []struct {
		name string
		make func(any)
	}{
		{"valid", func(s any) { Valid(s) }},
		{"full", func(s any) { Full(s) }},
		{"invalid", func(s any) { Invalid(s) }},
	} {
		for _, test := range realistic[2:4] {
			b.Run(call.name+"/"+test.name, func(b *testing.B) {
				document := parse(b, test.schema)
				b.ReportAllocs()
				for b.Loop() {
					call.make(document)
				}
			})
		}
	}
}

// The worst that the bounds let through.
func BenchmarkHostile(b *testing.B) {
	for _, test := range hostile {
		switch test.name {
		case "doubling of judgement", "patterns by the thousand", "many members", "circle through names":
			b.Run(test.name, func(b *testing.B) {
				document := parse(b, test.schema)
				for b.Loop() {
					Valid(document)
					Full(document)
					Invalid(document)
				}
			})
		}
	}
}
