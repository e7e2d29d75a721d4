package mutation

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/patches"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
)

// Extensions finds handlers: *extension.Client.
type Extensions interface {
	Find(ctx context.Context, hook runtimecatalog.Hook, forObject client.Object, name string) (*extension.Target, error)
}

// Caller implements patches.Extension. It is safe for concurrent use.
type Caller struct {
	extensions Extensions
	answers    *answers
}

var _ patches.Extension = &Caller{}

// New returns a Caller.
func New(extensions Extensions, clock clock.PassiveClock) *Caller {
	return &Caller{extensions: extensions, answers: newAnswers(clock)}
}

// GeneratePatches implements patches.Extension.
func (c *Caller) GeneratePatches(ctx context.Context, call patches.Call) ([]patches.Patch, error) {
	target, err := c.extensions.Find(ctx, runtimehooksv1.GeneratePatches, call.Cluster, call.Handler)
	if err != nil {
		return nil, err
	}
	request, uids := generateRequest(call)
	q, err := questionOf(target, call.Settings, request)
	if err != nil {
		return nil, err
	}
	known := c.answers.get(q)
	if known.valid {
		return known.patches, nil
	}
	ask := func() (answer, bool, error) {
		response := &runtimehooksv1.GeneratePatchesResponse{}
		var found answer
		ignored, err := target.Call(ctx, call.Settings, request, response, func() (err error) {
			found, err = answerOf(ctx, call, uids, response.Items)
			return err
		})
		return found, ignored, err
	}
	first, ignored, err := ask()
	if err != nil || ignored {
		return known.patches, err // The previous ones, if any: an ignored failure is not cached.
	}
	if first.effect != known.effect && isCreated(call.Cluster) {
		second, ignored, err := ask()
		switch {
		case err != nil || ignored:
			return known.patches, err
		case second.effect != first.effect:
			return nil, fmt.Errorf("extension %s is not deterministic: it answered the same request with different patches. "+
				"Nothing is changed until its answers are equal", call.Handler)
		}
	}
	c.answers.put(q, first, target.Cacheable())
	return first.patches, nil
}

// isCreated reports whether a Cluster may have Machines.
func isCreated(cluster *clusterv1.Cluster) bool { return cluster.Spec.ControlPlaneRef.IsDefined() }

// ValidateTopology implements patches.Extension. Only agreement is used again.
func (c *Caller) ValidateTopology(ctx context.Context, call patches.Call) error {
	target, err := c.extensions.Find(ctx, runtimehooksv1.ValidateTopology, call.Cluster, call.Handler)
	if err != nil {
		return err
	}
	request := validateRequest(call)
	q, err := questionOf(target, call.Settings, request)
	if err != nil {
		return err
	}
	if c.answers.get(q).valid {
		return nil
	}
	if ignored, err := target.Call(ctx, call.Settings, request, &runtimehooksv1.ValidateTopologyResponse{}, nil); err != nil || ignored {
		return err
	}
	c.answers.put(q, answer{}, target.Cacheable())
	return nil
}

// DiscoverVariables returns the variables of the external patches of a class, in their order. It is an error if an extension returns
// invalid definitions, or a name twice.
func (c *Caller) DiscoverVariables(ctx context.Context, class *clusterv1.ClusterClass) ([]variables.Source, error) {
	var out []variables.Source
	for i := range class.Spec.Patches {
		patch := &class.Spec.Patches[i]
		if patch.External == nil || patch.External.DiscoverVariablesExtension == "" {
			continue
		}
		found, err := c.discover(ctx, class, patch)
		if err != nil {
			return nil, fmt.Errorf("patch %q: %w", patch.Name, err)
		}
		out = append(out, variables.Source{From: patch.Name, Variables: found})
	}
	return out, nil
}

// discover returns the variables of one patch. Answers are used again until the class changes.
func (c *Caller) discover(
	ctx context.Context, class *clusterv1.ClusterClass, patch *clusterv1.ClusterClassPatch,
) ([]clusterv1.ClusterClassVariable, error) {
	handler, settings := patch.External.DiscoverVariablesExtension, patch.External.Settings
	target, err := c.extensions.Find(ctx, runtimehooksv1.DiscoverVariables, class, handler)
	if err != nil {
		return nil, err
	}
	q, err := questionOf(target, settings, []any{class.UID, class.Generation, patch.Name})
	if err != nil {
		return nil, err
	}
	known := c.answers.get(q)
	if known.valid {
		return known.variables, nil
	}
	response := &runtimehooksv1.DiscoverVariablesResponse{}
	found := answer{}
	ignored, err := target.Call(ctx, settings, &runtimehooksv1.DiscoverVariablesRequest{}, response, func() (err error) {
		found, err = definitionsOf(ctx, handler, response.Variables)
		return err
	})
	if err != nil || ignored {
		return known.variables, err
	}
	c.answers.put(q, found, target.Cacheable())
	return found.variables, nil
}

// maxDefinitions limits the definitions of a response, in bytes: a class with more could not be stored.
const maxDefinitions = 3 << 19

// definitionsOf checks the variables of a response.
func definitionsOf(ctx context.Context, handler string, found []clusterv1.ClusterClassVariable) (answer, error) {
	encoded, err := json.Marshal(found)
	if err != nil {
		return answer{}, err
	}
	if len(encoded) > maxDefinitions {
		return answer{}, fmt.Errorf("extension %s returned variables of %d bytes: at most %d can be stored",
			handler, len(encoded), maxDefinitions)
	}
	if errs := variables.ValidateDefinitions(ctx, found, field.NewPath("variables")); len(errs) > 0 {
		return answer{}, fmt.Errorf("extension %s returned invalid variables: %w", handler, errs.ToAggregate())
	}
	return answer{variables: found, size: len(encoded)}, ctx.Err()
}

// generateRequest returns the request, and the item of each uid. The uids are derived from the items, so that equal calls are equal
// requests.
func generateRequest(call patches.Call) (*runtimehooksv1.GeneratePatchesRequest, map[types.UID]int) {
	request := &runtimehooksv1.GeneratePatchesRequest{Variables: sent(call.Variables), Items: []runtimehooksv1.GeneratePatchesRequestItem{}}
	uids := make(map[types.UID]int, len(call.Items))
	for n := range call.Items {
		item := &call.Items[n]
		uid := types.UID(uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "%s/%d/%v", call.Cluster.UID, n, item.Holder)).String())
		uids[uid] = n
		request.Items = append(request.Items, runtimehooksv1.GeneratePatchesRequestItem{
			UID:             uid,
			HolderReference: runtimehooksv1.HolderReference(item.Holder),
			Object:          runtime.RawExtension{Raw: item.Object},
			Variables:       sent(item.Variables),
		})
	}
	return request, uids
}

func validateRequest(call patches.Call) *runtimehooksv1.ValidateTopologyRequest {
	request := &runtimehooksv1.ValidateTopologyRequest{Variables: sent(call.Variables), Items: []*runtimehooksv1.ValidateTopologyRequestItem{}}
	for n := range call.Items {
		item := &call.Items[n]
		request.Items = append(request.Items, &runtimehooksv1.ValidateTopologyRequestItem{
			HolderReference: runtimehooksv1.HolderReference(item.Holder),
			Object:          runtime.RawExtension{Raw: item.Object},
			Variables:       sent(item.Variables),
		})
	}
	return request
}

// sent returns variables as requests contain them. The list is never null.
func sent(all []patches.Variable) []runtimehooksv1.Variable {
	out := make([]runtimehooksv1.Variable, 0, len(all))
	for _, v := range all {
		out = append(out, runtimehooksv1.Variable{Name: v.Name, Value: apiextensionsv1.JSON{Raw: v.Value.Raw}})
	}
	return out
}
