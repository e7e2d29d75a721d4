package diagnosis

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/bounds"
)

// Limit is the range of the number of unhealthy Machines in which remediation is allowed, both ends included.
type Limit struct {
	Min, Max int
	// Field is the field that sets it, as v1beta1 calls it, with its value.
	Field string
}

// LimitOf returns the limit of a check for a number of targets. A range takes precedence.
func LimitOf(spec *clusterv1.MachineHealthCheckSpec, expected int) (Limit, error) {
	if spec.Remediation.TriggerIf.UnhealthyInRange != "" {
		return ParseRange(spec.Remediation.TriggerIf.UnhealthyInRange)
	}
	value := spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo
	if value == nil {
		return Limit{Max: expected, Field: "maxUnhealthy 100%"}, nil
	}
	limit, err := bounds.Scaled(value, int32(min(expected, math.MaxInt32)), false)
	if err != nil {
		return Limit{}, fmt.Errorf("invalid spec.maxUnhealthy %q: %w", value.String(), err)
	}
	return Limit{Max: int(max(0, limit)), Field: "maxUnhealthy " + value.String()}, nil
}

// ParseRange parses a range, such as "[3-5]".
func ParseRange(text string) (Limit, error) {
	inner, opened := strings.CutPrefix(text, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	from, to, separated := strings.Cut(inner, "-")
	low, errLow := strconv.Atoi(from)
	high, errHigh := strconv.Atoi(to)
	if !opened || !closed || !separated || errLow != nil || errHigh != nil {
		return Limit{}, fmt.Errorf("invalid spec.unhealthyRange %q: must be two numbers, such as [3-5]", text)
	}
	if low < 0 || low > high {
		return Limit{}, fmt.Errorf("invalid spec.unhealthyRange %q: the first number must not be greater than the second", text)
	}
	return Limit{Min: low, Max: high, Field: "unhealthyRange " + text}, nil
}

// Allows reports whether Machines may be remediated while a number of Machines is unhealthy.
func (l Limit) Allows(unhealthy int) bool { return l.Min <= unhealthy && unhealthy <= l.Max }
