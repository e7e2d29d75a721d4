package hook

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/runtime-extension-test/internal/kubelet"
)

// updateInterval is when an update that is in progress is continued, in seconds.
const updateInterval = 1

func (h *Handlers) canUpdateMachine(
	ctx context.Context, request *hooksv1.CanUpdateMachineRequest, response *hooksv1.CanUpdateMachineResponse,
) {
	m := &request.Current.Machine
	cluster := types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.ClusterName}
	a, ok := h.answer(ctx, "CanUpdateMachine", request.Settings, cluster, response)
	if !ok {
		return
	}
	var err error
	response.BootstrapConfigPatch, err = kubeletPatch(request.Current.BootstrapConfig.Raw, request.Desired.BootstrapConfig.Raw, a.KubeletFlags)
	if err != nil {
		fail(response, fmt.Errorf("cannot compare bootstrap configs of Machine %s: %w", m.Name, err))
	}
}

func (h *Handlers) canUpdateMachineSet(
	ctx context.Context, request *hooksv1.CanUpdateMachineSetRequest, response *hooksv1.CanUpdateMachineSetResponse,
) {
	s := &request.Current.MachineSet
	cluster := types.NamespacedName{Namespace: s.Namespace, Name: s.Spec.ClusterName}
	a, ok := h.answer(ctx, "CanUpdateMachineSet", request.Settings, cluster, response)
	if !ok {
		return
	}
	var err error
	response.BootstrapConfigTemplatePatch, err = kubeletPatch(
		request.Current.BootstrapConfigTemplate.Raw, request.Desired.BootstrapConfigTemplate.Raw, a.KubeletFlags, "spec", "template",
	)
	if err != nil {
		fail(response, fmt.Errorf("cannot compare bootstrap config templates of MachineSet %s: %w", s.Name, err))
	}
}

// kubeletPatch returns the patch with the flags of kubelets, from one bootstrap config to another.
func kubeletPatch(current, desired []byte, names []string, path ...string) (hooksv1.Patch, error) {
	if len(names) == 0 || len(current) == 0 || len(desired) == 0 {
		return hooksv1.Patch{}, nil
	}
	var is, wanted map[string]any
	if err := json.Unmarshal(current, &is); err != nil {
		return hooksv1.Patch{}, err
	}
	if err := json.Unmarshal(desired, &wanted); err != nil {
		return hooksv1.Patch{}, err
	}
	patch, err := kubelet.Patch(is, wanted, names, path...)
	if err != nil || patch == nil {
		return hooksv1.Patch{}, err
	}
	raw, err := json.Marshal(patch)
	return hooksv1.Patch{PatchType: hooksv1.JSONMergePatchType, Patch: raw}, err
}

func (h *Handlers) updateMachine(ctx context.Context, request *hooksv1.UpdateMachineRequest, response *hooksv1.UpdateMachineResponse) {
	m := &request.Desired.Machine
	cluster := types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.ClusterName}
	a, ok := h.answer(ctx, "UpdateMachine", request.Settings, cluster, response)
	if !ok || a.RetryAfterSeconds != 0 || len(a.KubeletFlags) == 0 || len(request.Desired.BootstrapConfig.Raw) == 0 {
		return
	}
	var config map[string]any
	if err := json.Unmarshal(request.Desired.BootstrapConfig.Raw, &config); err != nil {
		fail(response, fmt.Errorf("cannot decode the bootstrap config of Machine %s: %w", m.Name, err))
		return
	}
	flags, err := kubelet.Desired(config, a.KubeletFlags)
	if err != nil {
		fail(response, fmt.Errorf("invalid bootstrap config of Machine %s: %w", m.Name, err))
		return
	}
	waiting, err := h.Kubelets.Update(ctx, kubelet.Machine{Cluster: cluster, ProviderID: m.Spec.ProviderID}, a.KubeletFlags, flags)
	switch {
	case err != nil:
		fail(response, err)
	case waiting != "":
		response.Message, response.RetryAfterSeconds = "Waiting for "+waiting, updateInterval
	}
}
