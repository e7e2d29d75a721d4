package hook

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimehooksv1 "sigs.k8s.io/cluster-api/exp/runtime/hooks/api/v1alpha1"
	"sigs.k8s.io/cluster-api/exp/runtime/server"
	"sigs.k8s.io/cluster-api/exp/runtime/topologymutation"
	"sigs.k8s.io/cluster-api/providers/runtime-extension-test/internal/answer"
	"sigs.k8s.io/cluster-api/providers/runtime-extension-test/internal/kubelet"
)

// Setting is the setting, of an ExtensionConfig or an external patch, with another ConfigMap to read answers from, as namespace/name. The
// hook DiscoverVariables, which is not called for a Cluster, needs it.
const Setting = "answers"

// Source has the answers.
type Source interface {
	// Take returns the answer for a call of a hook.
	Take(ctx context.Context, config types.NamespacedName, hook string) (answer.Answer, error)
}

// Handlers answer calls.
type Handlers struct {
	Source Source
	Clock  clock.Clock
	// Kubelets changes the kubelets of running machines.
	Kubelets *kubelet.Updater
}

// AddTo adds all handlers to a server.
func (h *Handlers) AddTo(s *server.Server) error {
	var errs []error
	for _, e := range []server.ExtensionHandler{
		{Name: "before-cluster-create", Hook: runtimehooksv1.BeforeClusterCreate, HandlerFunc: h.beforeClusterCreate},
		{Name: "after-control-plane-initialized", Hook: runtimehooksv1.AfterControlPlaneInitialized, HandlerFunc: h.afterControlPlaneInitialized},
		{Name: "before-cluster-upgrade", Hook: runtimehooksv1.BeforeClusterUpgrade, HandlerFunc: h.beforeClusterUpgrade},
		{Name: "after-control-plane-upgrade", Hook: runtimehooksv1.AfterControlPlaneUpgrade, HandlerFunc: h.afterControlPlaneUpgrade},
		{Name: "after-cluster-upgrade", Hook: runtimehooksv1.AfterClusterUpgrade, HandlerFunc: h.afterClusterUpgrade},
		{Name: "before-cluster-delete", Hook: runtimehooksv1.BeforeClusterDelete, HandlerFunc: h.beforeClusterDelete},
		{Name: "generate-patches", Hook: runtimehooksv1.GeneratePatches, HandlerFunc: h.generatePatches},
		{Name: "validate-topology", Hook: runtimehooksv1.ValidateTopology, HandlerFunc: h.validateTopology},
		{Name: "discover-variables", Hook: runtimehooksv1.DiscoverVariables, HandlerFunc: h.discoverVariables},
		{Name: "before-control-plane-upgrade", Hook: hooksv1.BeforeControlPlaneUpgrade, HandlerFunc: h.beforeControlPlaneUpgrade},
		{Name: "before-workers-upgrade", Hook: hooksv1.BeforeWorkersUpgrade, HandlerFunc: h.beforeWorkersUpgrade},
		{Name: "after-workers-upgrade", Hook: hooksv1.AfterWorkersUpgrade, HandlerFunc: h.afterWorkersUpgrade},
		{Name: "generate-upgrade-plan", Hook: hooksv1.GenerateUpgradePlan, HandlerFunc: h.generateUpgradePlan},
		{Name: "can-update-machine", Hook: hooksv1.CanUpdateMachine, HandlerFunc: h.canUpdateMachine},
		{Name: "can-update-machine-set", Hook: hooksv1.CanUpdateMachineSet, HandlerFunc: h.canUpdateMachineSet},
		{Name: "update-machine", Hook: hooksv1.UpdateMachine, HandlerFunc: h.updateMachine},
	} {
		errs = append(errs, s.AddExtensionHandler(e))
	}
	return errors.Join(errs...)
}

// NewCatalog returns a catalog with the hooks: those of v1.7 as v1.7 has them, with v1beta1, and later ones.
func NewCatalog() (*runtimecatalog.Catalog, error) {
	c, later := runtimecatalog.New(), runtimecatalog.New()
	if err := errors.Join(runtimehooksv1.AddToCatalog(c), hooksv1.AddToCatalog(later)); err != nil {
		return nil, err
	}
	b := &runtimecatalog.Builder{GroupVersion: hooksv1.GroupVersion}
	for _, hook := range []runtimecatalog.Hook{
		hooksv1.BeforeControlPlaneUpgrade, hooksv1.BeforeWorkersUpgrade, hooksv1.AfterWorkersUpgrade, hooksv1.GenerateUpgradePlan,
		hooksv1.CanUpdateMachine, hooksv1.CanUpdateMachineSet, hooksv1.UpdateMachine,
	} {
		name, err := later.GroupVersionHook(hook)
		if err != nil {
			return nil, err
		}
		meta, err := later.Meta(name)
		if err != nil {
			return nil, err
		}
		b.RegisterHook(hook, &meta)
	}
	return c, b.AddToCatalog(c)
}

func (h *Handlers) beforeClusterCreate(
	ctx context.Context, request *runtimehooksv1.BeforeClusterCreateRequest, response *runtimehooksv1.BeforeClusterCreateResponse,
) {
	h.lifecycle(ctx, "BeforeClusterCreate", request, &request.Cluster, response)
}

func (h *Handlers) afterControlPlaneInitialized(
	ctx context.Context,
	request *runtimehooksv1.AfterControlPlaneInitializedRequest, response *runtimehooksv1.AfterControlPlaneInitializedResponse,
) {
	h.lifecycle(ctx, "AfterControlPlaneInitialized", request, &request.Cluster, response)
}

func (h *Handlers) beforeClusterUpgrade(
	ctx context.Context, request *runtimehooksv1.BeforeClusterUpgradeRequest, response *runtimehooksv1.BeforeClusterUpgradeResponse,
) {
	h.lifecycle(ctx, "BeforeClusterUpgrade", request, &request.Cluster, response)
}

func (h *Handlers) afterControlPlaneUpgrade(
	ctx context.Context, request *runtimehooksv1.AfterControlPlaneUpgradeRequest, response *runtimehooksv1.AfterControlPlaneUpgradeResponse,
) {
	h.lifecycle(ctx, "AfterControlPlaneUpgrade", request, &request.Cluster, response)
}

func (h *Handlers) afterClusterUpgrade(
	ctx context.Context, request *runtimehooksv1.AfterClusterUpgradeRequest, response *runtimehooksv1.AfterClusterUpgradeResponse,
) {
	h.lifecycle(ctx, "AfterClusterUpgrade", request, &request.Cluster, response)
}

func (h *Handlers) beforeClusterDelete(
	ctx context.Context, request *runtimehooksv1.BeforeClusterDeleteRequest, response *runtimehooksv1.BeforeClusterDeleteResponse,
) {
	h.lifecycle(ctx, "BeforeClusterDelete", request, &request.Cluster, response)
}

func (h *Handlers) lifecycle(
	ctx context.Context, hook string, request runtimehooksv1.RequestObject, cluster metav1.Object,
	response runtimehooksv1.ResponseObject,
) {
	h.answer(ctx, hook, request.GetSettings(), types.NamespacedName{Namespace: cluster.GetNamespace(), Name: cluster.GetName()}, response)
}

func (h *Handlers) generatePatches(
	ctx context.Context, request *runtimehooksv1.GeneratePatchesRequest, response *runtimehooksv1.GeneratePatchesResponse,
) {
	response.Items = []runtimehooksv1.GeneratePatchesResponseItem{}
	a, ok := h.topology(ctx, "GeneratePatches", request.Settings, request.Variables, response)
	if !ok {
		return
	}
	items, err := patches(a.Patches, request)
	if err != nil {
		fail(response, err)
		return
	}
	response.Items = items
}

func (h *Handlers) validateTopology(
	ctx context.Context, request *runtimehooksv1.ValidateTopologyRequest, response *runtimehooksv1.ValidateTopologyResponse,
) {
	h.topology(ctx, "ValidateTopology", request.Settings, request.Variables, response)
}

func (h *Handlers) discoverVariables(
	ctx context.Context, request *runtimehooksv1.DiscoverVariablesRequest, response *runtimehooksv1.DiscoverVariablesResponse,
) {
	response.Variables = []clusterv1beta1.ClusterClassVariable{}
	if request.Settings[Setting] == "" {
		return
	}
	if a, ok := h.answer(ctx, "DiscoverVariables", request.Settings, types.NamespacedName{}, response); ok {
		response.Variables = append(response.Variables, a.Variables...)
	}
}

// topology answers a hook whose request identifies the Cluster by builtin variables.
func (h *Handlers) topology(
	ctx context.Context, hook string, settings map[string]string, variables []runtimehooksv1.Variable, response runtimehooksv1.ResponseObject,
) (answer.Answer, bool) {
	cluster, err := clusterOf(topologymutation.ToMap(variables))
	if err != nil {
		fail(response, err)
		return answer.Answer{}, false
	}
	return h.answer(ctx, hook, settings, cluster, response)
}

func clusterOf(variables map[string]apiextensionsv1.JSON) (types.NamespacedName, error) {
	var cluster struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	}
	err := topologymutation.GetObjectVariableInto(variables, "builtin.cluster", &cluster)
	return types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}, err
}

// answer fills in what all responses have. It reports whether the response is a success.
func (h *Handlers) answer(
	ctx context.Context, hook string, settings map[string]string, cluster types.NamespacedName, response runtimehooksv1.ResponseObject,
) (answer.Answer, bool) {
	config := types.NamespacedName{Namespace: cluster.Namespace, Name: answer.Name(cluster.Name)}
	if other := settings[Setting]; other != "" {
		namespace, name, ok := strings.Cut(other, "/")
		if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			fail(response,
				fmt.Errorf("setting %s is %q, but must be the namespace and name of a ConfigMap, such as default/answers", Setting, other))
			return answer.Answer{}, false
		}
		config = types.NamespacedName{Namespace: namespace, Name: name}
	}
	a, err := h.Source.Take(ctx, config, hook)
	if err != nil {
		fail(response, err)
		return answer.Answer{}, false
	}
	if a.Delay.Duration > 0 {
		select {
		case <-h.Clock.After(a.Delay.Duration):
		case <-ctx.Done(): // The caller gave up.
		}
	}
	status := runtimehooksv1.ResponseStatusSuccess
	if a.Status != "" {
		status = a.Status
	}
	response.SetStatus(status)
	response.SetMessage(a.Message)
	if retry, ok := response.(runtimehooksv1.RetryResponseObject); ok {
		retry.SetRetryAfterSeconds(a.RetryAfterSeconds)
	}
	return a, status == runtimehooksv1.ResponseStatusSuccess
}

func fail(response runtimehooksv1.ResponseObject, err error) {
	response.SetStatus(runtimehooksv1.ResponseStatusFailure)
	response.SetMessage(err.Error())
}
