package rollout

import (
	"cmp"
	"fmt"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

// costLimit is how much one expression may cost for one Cluster, in units of CEL: far more than conditions need, and milliseconds.
const costLimit = 100_000

// healthCheck is a condition that Clusters must meet.
type healthCheck struct {
	program cel.Program
	message string
}

// checksOf compiles the health checks of a strategy. Errors name the field.
func checksOf(strategy *fleetv1.RolloutStrategy) ([]healthCheck, error) {
	if len(strategy.HealthChecks) == 0 {
		return nil, nil
	}
	env, err := cel.NewEnv(cel.Variable("self", cel.DynType))
	if err != nil {
		return nil, fmt.Errorf("preparing CEL: %w", err)
	}
	var all []healthCheck
	for i, check := range strategy.HealthChecks {
		ast, issues := env.Compile(check.Expression)
		if issues.Err() != nil {
			return nil, fmt.Errorf("healthChecks[%d].expression: %w", i, issues.Err())
		}
		if t := ast.OutputType(); t != cel.BoolType && t != cel.DynType {
			return nil, fmt.Errorf("healthChecks[%d].expression: must be true or false, and is of type %s", i, t)
		}
		program, err := env.Program(ast, cel.CostLimit(costLimit))
		if err != nil {
			return nil, fmt.Errorf("healthChecks[%d].expression: %w", i, err)
		}
		all = append(all, healthCheck{program, cmp.Or(check.Message, "not true: "+check.Expression)})
	}
	return all, nil
}

// wrong returns what is wrong with a Cluster; empty if it meets the condition. An expression that fails, for example because a field is
// missing, is not met.
func (h healthCheck) wrong(cluster *clusterv1.Cluster) string {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(cluster)
	if err != nil {
		return err.Error()
	}
	out, _, err := h.program.Eval(map[string]any{"self": content})
	if err != nil {
		return fmt.Sprintf("%s (%v)", h.message, err)
	}
	if met, ok := out.Value().(bool); !ok || !met {
		return h.message
	}
	return ""
}
