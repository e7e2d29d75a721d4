package machinepool

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/bounds"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestInfrastructure(t *testing.T) {
	infra := func(spec, status fields) *unstructured.Unstructured {
		return provided(poolKind, fields{"spec": spec, "status": status})
	}
	wasReady := func(p *clusterv1.MachinePool) { p.Status.Initialization.InfrastructureProvisioned = ptr.To(true) }
	counted := func(p *clusterv1.MachinePool) {
		p.SetV1Beta1Status(clusterv1.MachinePoolV1Beta1DeprecatedStatus{ReadyReplicas: p.Status.Replicas, AvailableReplicas: p.Status.Replicas})
	}
	a, b := object.ProviderID("a"), object.ProviderID("b")
	many := make([]any, maxMachines+1)
	for i := range many {
		many[i] = strings.Repeat("x", 1+i%7)
	}
	const waiting = "False Info WaitingForInfrastructure Waiting for GenericMachinePool p to be ready"
	type outcome struct {
		Ready                       bool
		IDs                         []string
		Replicas, Counted, Missing  int32
		Condition, Failure, Problem string
	}
	violated := func(problem string) outcome {
		return outcome{Condition: "False Error " + reference.ContractViolatedReason + " " + problem, Problem: problem}
	}
	tests := map[string]struct {
		reason string
		pool   *clusterv1.MachinePool
		infra  *unstructured.Unstructured
		want   outcome
	}{
		"Missing": {"the object does not exist yet", pool(), nil,
			outcome{Condition: "False Error IncorrectExternalRef Waiting for GenericMachinePool p to exist"}},
		"Deleted": {"it was deleted, which is a terminal failure", pool(wasReady), nil, outcome{
			Ready:     true,
			Condition: "False Error IncorrectExternalRef GenericMachinePool p was ready and no longer exists: delete the MachinePool to replace it",
			Failure:   `InvalidConfiguration: MachinePool infrastructure resource infrastructure.cluster.x-k8s.io/v1, Kind=GenericMachinePool with name "p" has been deleted after being ready`,
			Problem:   "terminal error: GenericMachinePool p was ready and no longer exists: delete the MachinePool to replace it"}},
		"NotReady": {"the provider has not reported anything", pool(), infra(nil, nil),
			outcome{Condition: waiting}},
		"Starting": {"replicas and IDs are copied before it is ready", pool(), infra(fields{"providerIDList": []any{a}}, fields{"replicas": int64(2)}),
			outcome{IDs: []string{a}, Replicas: 2, Missing: 2, Condition: waiting}},
		"Ready": {"it is ready", pool(), infra(fields{"providerIDList": []any{a, b}}, fields{"ready": true, "replicas": int64(2)}),
			outcome{Ready: true, IDs: []string{a, b}, Replicas: 2, Missing: 2, Condition: "True"}},
		"Unchanged": {"the counters of the same machines are kept", pool(withIDs("a", "b"), counted), infra(fields{"providerIDList": []any{a, b}}, fields{"ready": true, "replicas": int64(2)}),
			outcome{Ready: true, IDs: []string{a, b}, Replicas: 2, Counted: 2, Condition: "True"}},
		"Changed": {"those of other machines are not", pool(withIDs("a", "c"), counted), infra(fields{"providerIDList": []any{a, b}}, fields{"ready": true, "replicas": int64(2)}),
			outcome{Ready: true, IDs: []string{a, b}, Replicas: 2, Missing: 2, Condition: "True"}},
		"NoReplicas": {"a provider that does not count keeps what is there", pool(withIDs("a")), infra(fields{"providerIDList": []any{a}}, fields{"ready": true}),
			outcome{Ready: true, IDs: []string{a}, Replicas: 1, Condition: "True"}},
		"NoIDs": {"it has machines, but does not know them yet", pool(withIDs("a")), infra(nil, fields{"ready": true, "replicas": int64(1)}),
			outcome{Ready: true, IDs: []string{a}, Replicas: 1, Condition: "True"}},
		"NoMachines": {"it has no machines", pool(withIDs("a"), counted), infra(nil, fields{"ready": true, "replicas": int64(0)}),
			outcome{Ready: true, Condition: "True"}},
		"Twice": {"an ID counts once", pool(), infra(fields{"providerIDList": []any{a, b, a}}, fields{"ready": true, "replicas": int64(-2)}),
			outcome{Ready: true, IDs: []string{a, b}, Condition: "True"}},
		"Empty": {"an ID is empty", pool(), infra(fields{"providerIDList": []any{a, ""}}, nil),
			violated("spec.providerIDList of GenericMachinePool default/p: element 1 is empty")},
		"Long": {"an ID is too long", pool(), infra(fields{"providerIDList": []any{strings.Repeat("x", bounds.ProviderID+1)}}, nil),
			violated("spec.providerIDList of GenericMachinePool default/p: element 0 is longer than 1024 characters")},
		"Many": {"there are too many", pool(), infra(fields{"providerIDList": many}, nil),
			violated("spec.providerIDList of GenericMachinePool default/p has more than 5000 elements")},
		"Wrong": {"a field has another type", pool(), infra(nil, fields{"replicas": "two"}),
			violated("GenericMachinePool.infrastructure.cluster.x-k8s.io default/p: field status.replicas is a string, the contract asks for a whole number")},
		"Failed": {"a terminal failure is copied", pool(), infra(nil, fields{"failureReason": "Unfit", "failureMessage": "no"}), outcome{
			Condition: waiting,
			Failure:   `Unfit: Failure detected from referenced resource infrastructure.cluster.x-k8s.io/v1, Kind=GenericMachinePool with name "p": no`}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{}
			if tc.infra != nil {
				objects = append(objects, tc.infra)
			}
			p := tc.pool
			_, err := newWorld(t, objects...).step(t, "infrastructure", &scope{pool: p, cluster: build.Cluster()})
			got := outcome{
				Ready: ptr.Deref(p.Status.Initialization.InfrastructureProvisioned, false), IDs: p.Spec.ProviderIDList, Replicas: ptr.Deref(p.Status.Replicas, 0),
				Counted: ptr.Deref(p.GetV1Beta1Status().ReadyReplicas, 0), Missing: ptr.Deref(p.GetV1Beta1Status().UnavailableReplicas, 0),
				Condition: object.State(p, clusterv1.InfrastructureReadyV1Beta1Condition),
			}
			if err != nil {
				got.Problem = err.Error()
			}
			got.Failure = failureOf(p)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestInfrastructureMissingInTheCache does not report a terminal failure because of a stale cache.
func TestInfrastructureMissingInTheCache(t *testing.T) {
	w := newWorld(t, infraWith("a"))
	w.Cache.Hide(infraWith("a"))
	p := pool(func(p *clusterv1.MachinePool) { p.Status.Initialization.InfrastructureProvisioned = ptr.To(true) })
	if _, err := w.step(t, "infrastructure", &scope{pool: p, cluster: build.Cluster()}); !step.IsStale(err) || failureOf(p) != "" {
		t.Errorf("err = %v, failure = %q; want a stale error", err, failureOf(p))
	}
}
