package topologyplan

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/lifecycle"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/mutation"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/patches"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/plan"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
	"sigs.k8s.io/cluster-api/providers/internal/extension/wire"
)

// extensions are the runtime extensions of a plan.
type extensions struct {
	client *extension.Client
	// patches are those that patch topologies.
	patches patches.Extension
	// upgrades are those that choose the versions of upgrades. They are called even if patches are skipped: without versions, there is no
	// plan.
	upgrades plan.UpgradePlans
}

// newExtensions returns the extensions of the ExtensionConfigs in a world.
func newExtensions(reader client.Reader, in Input) (*extensions, error) {
	catalog := runtimecatalog.New()
	if err := runtimehooksv1.AddToCatalog(catalog); err != nil {
		return nil, err
	}
	caller := wire.NewCaller(wire.Options{UserAgent: in.UserAgent, Dial: in.Dial, Metrics: prometheus.NewRegistry(), Clock: clock.RealClock{}})
	calling, err := extension.New(extension.Options{Reader: reader, Catalog: catalog, Caller: caller})
	if err != nil {
		return nil, err
	}
	out := &extensions{client: calling}
	calls := mutation.New(out.client, clock.RealClock{})
	out.patches, out.upgrades = reachable{calls}, calls
	if in.SkipExtensions {
		out.patches = skipped{}
	}
	return out, nil
}

// reachable adds to errors what to do about extensions that cannot be reached from here.
type reachable struct{ patches.Extension }

// GeneratePatches implements patches.Extension.
func (r reachable) GeneratePatches(ctx context.Context, call patches.Call) ([]patches.Patch, error) {
	out, err := r.Extension.GeneratePatches(ctx, call)
	return out, skippable(err)
}

// ValidateTopology implements patches.Extension.
func (r reachable) ValidateTopology(ctx context.Context, call patches.Call) error {
	return skippable(r.Extension.ValidateTopology(ctx, call))
}

func skippable(err error) error {
	if err == nil {
		return nil
	}
	if failed, ok := errors.AsType[*wire.Error](err); ok {
		err = fmt.Errorf("%w (%s)", err, failed.Detail()) // Conditions omit details that change; a terminal does not.
	}
	return &ExtensionError{fmt.Errorf("%w: extensions are called from the machine of this command, those behind a Service through the API "+
		"server; use --skip-extensions to plan without their patches", err)}
}

// skipped is an extension without patches.
type skipped struct{}

// GeneratePatches implements patches.Extension.
func (skipped) GeneratePatches(context.Context, patches.Call) ([]patches.Patch, error) {
	return nil, nil
}

// ValidateTopology implements patches.Extension.
func (skipped) ValidateTopology(context.Context, patches.Call) error { return nil }

// recorder implements plan.Hooks: it records which hooks are due, and nothing blocks. Extensions are not called, because they may
// act on the call.
type recorder struct {
	extensions *extension.Client
	names      []string
}

// Ask implements plan.Hooks. Hooks without extensions are not recorded.
func (r *recorder) Ask(ctx context.Context, cluster *clusterv1.Cluster, call lifecycle.Call) (lifecycle.Answer, error) {
	hook, _, _, err := lifecycle.Message(cluster, call)
	if err != nil {
		return lifecycle.Answer{}, err
	}
	handlers, err := r.extensions.Handlers(ctx, hook, cluster)
	if apierrors.IsForbidden(err) {
		handlers, err = []string{"unknown, because ExtensionConfigs cannot be read"}, nil
	}
	if notReady, ok := errors.AsType[*extension.NotReadyError](err); ok {
		handlers, err = []string{"of ExtensionConfig " + notReady.Config + ", which is not discovered yet"}, nil
	}
	if err == nil && len(handlers) > 0 {
		r.names = append(r.names, fmt.Sprintf("%s (extension %s)", call.Hook, strings.Join(handlers, ", ")))
	}
	return lifecycle.Answer{}, err
}
