package wait

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
	"sigs.k8s.io/cluster-api/packages/retry"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/replacement"
	"sigs.k8s.io/cluster-api/providers/core/topologyplan"
)

// planner finds what the topology controller has not yet done for a Cluster. No condition says that: those of a changed class or
// variable are about the time before the change, until the controller has seen it.
type planner struct {
	io     *iostreams.Streams
	clock  clock.PassiveClock
	client client.Client
	dial   *management.Dialer
	// warned is set once it is known that plans cannot be made, and failures counts the errors since the last plan.
	warned   bool
	failures int
	// last is the result for the versions of the objects, and when it was computed: a plan takes many requests.
	last     []string
	versions string
	at       time.Time
}

// planInterval is how often a plan is made anew for unchanged objects, for classes and templates that changed meanwhile.
const planInterval = 10 * time.Second

// maxFailures is how many plans in a row may fail with errors that pass, such as an API server that is restarting.
const maxFailures = 10

func newPlanner(opts *Options, m *management.Cluster) (*planner, error) {
	dial, err := management.NewDialer(m.Client, m.Config)
	if err != nil {
		return nil, err
	}
	live, err := m.Discovering(topologyplan.Contracts, func() {})
	return &planner{io: opts.IO, clock: opts.Clock, client: live, dial: dial}, err
}

// pending returns what the controller still has to do. It returns nothing, with a warning, if that cannot be computed, for example
// because an extension that the class uses cannot be reached from here: the conditions of the Cluster have to do then.
func (p *planner) pending(ctx context.Context, cluster *unstructured.Unstructured, objects *tree.Objects) []string {
	if tree.Text(cluster, "spec", "topology", "class") == "" || p.warned {
		return nil
	}
	if versions := versionsOf(objects); p.failures > 0 || versions != p.versions || p.clock.Since(p.at) > planInterval {
		p.last, p.versions, p.at = p.compute(ctx, cluster), versions, p.clock.Now()
	}
	return p.last
}

// versionsOf returns a text that changes whenever an object does.
func versionsOf(objects *tree.Objects) string {
	var list []string
	for _, u := range objects.All() {
		list = append(list, string(u.GetUID())+" "+u.GetResourceVersion())
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}

func (p *planner) compute(ctx context.Context, cluster *unstructured.Unstructured) []string {
	plan, err := topologyplan.Compute(ctx, topologyplan.Input{
		Namespace: cluster.GetNamespace(), Cluster: cluster.GetName(), Live: p.client, Dial: p.dial.DialContext, UserAgent: "clusterctl",
		Now:           p.clock.Now(),
		ControlPlanes: map[schema.GroupKind]topologyplan.Outdated{replacement.Kind(): replacement.Reasons},
	})
	switch {
	case ctx.Err() != nil:
		return []string{"the plan of the topology"}
	case err != nil && retry.Passes(err) && p.failures < maxFailures:
		p.failures++
		return []string{fmt.Sprintf("the topology to be planned: %v", err)}
	case err != nil:
		p.warned = true
		p.io.Warnf("A change that no controller has seen yet is not noticed, because the topology cannot be planned: %v", err)
		return nil
	}
	p.failures = 0
	return pending(plan)
}

// pending describes a plan.
func pending(plan *topologyplan.Plan) []string {
	var list []string
	for _, round := range plan.Rounds {
		for _, hook := range round.Hooks {
			list = append(list, "lifecycle hook "+hook)
		}
		for _, change := range round.Changes {
			u := change.Object()
			list = append(list, fmt.Sprintf("%s %s to be %s", u.GetKind(), u.GetName(), change.Action))
		}
		for i := range round.Rollouts {
			r := &round.Rollouts[i]
			if len(r.Machines) > 0 {
				list = append(list, fmt.Sprintf("%s %s to replace %d Machines", r.Kind, r.Name, len(r.Machines)))
			}
		}
	}
	if plan.Waiting != "" {
		list = append(list, plan.Waiting)
	}
	return list
}
