package bounds

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// ErrNotScalable is the error for values that are neither numbers nor percentages.
var ErrNotScalable = errors.New("must be a number or a percentage")

// Scaled returns a number, or a percentage of total, rounded up or down. Results beyond an int32 become the nearest int32.
func Scaled(value *intstr.IntOrString, total int32, roundUp bool) (int32, error) {
	if value.Type == intstr.Int {
		return value.IntVal, nil
	}
	text, percentage := strings.CutSuffix(value.StrVal, "%")
	percent, err := strconv.Atoi(text)
	if err != nil || !percentage {
		return 0, ErrNotScalable
	}
	exact := float64(percent) * float64(total) / 100
	if roundUp {
		exact = math.Ceil(exact)
	} else {
		exact = math.Floor(exact)
	}
	return int32(max(math.MinInt32, min(exact, math.MaxInt32))), nil
}
