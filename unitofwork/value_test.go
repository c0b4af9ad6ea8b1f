package unitofwork

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// DynamoDB takes these for one number each, and tells all others apart.
func TestOneTextForEachNumber(t *testing.T) {
	for text, others := range map[string][]string{
		"0":                                      {"-0", "00", "0.0", "0e9", "+0"},
		"1":                                      {"01", "1.0", "+1", "1e0", "10E-1", "0.1e1", "1."},
		"-12.5":                                  {"-12.50", "-125e-1", "-0012.5"},
		"0.001":                                  {"1e-3", ".001", "0.0010"},
		"12345678901234567890123456789012345678": {"12345678901234567890123456789012345678.0"},
	} {
		require.Equal(t, text, numberText(text))
		for _, other := range others {
			require.Equal(t, text, numberText(other), other)
		}
	}
	for _, none := range []string{"", "seven", "1e9999", "0x10", "1/2", "Inf", "1_000"} {
		require.Equal(t, none, numberText(none), "as it is")
	}
}
