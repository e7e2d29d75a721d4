package bounds_test

import (
	"math"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"sigs.k8s.io/cluster-api/providers/core/internal/bounds"
)

func TestScaled(t *testing.T) {
	for _, c := range []struct {
		reason  string
		value   string
		total   int32
		up      bool
		want    int32
		invalid bool
	}{
		{reason: "a number is kept", value: "-7", total: 3, want: -7},
		{reason: "rounded up", value: "25%", total: 5, up: true, want: 2},
		{reason: "rounded down", value: "25%", total: 5, want: 1},
		{reason: "100 % is exact", value: "100%", total: math.MaxInt32, up: true, want: math.MaxInt32},
		{reason: "too large", value: "9223372036854775807%", total: 3, want: math.MaxInt32},
		{reason: "too small", value: "-9223372036854775807%", total: 3, want: math.MinInt32},
		{reason: "not an integer", value: "99999999999999999999%", total: 3, invalid: true},
		{reason: "not a percentage", value: "ten", total: 3, invalid: true},
	} {
		value := intstr.Parse(c.value)
		got, err := bounds.Scaled(&value, c.total, c.up)
		if got != c.want || (err != nil) != c.invalid {
			t.Errorf("%s: got %d, %v; want %d", c.reason, got, err, c.want)
		}
	}
}
