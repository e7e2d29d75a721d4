package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
)

// Patch changes an object.
type Patch struct {
	// patchType is JSONPatch or JSONMergePatch.
	PatchType PatchType `json:"patchType"`

	// patch is the patch. It may be empty.
	Patch []byte `json:"patch,omitempty"`
}

// IsDefined reports whether there is a patch.
func (p *Patch) IsDefined() bool { return p.PatchType != "" || len(p.Patch) > 0 }

// CanUpdateMachineRequestObjects are a Machine and its objects.
type CanUpdateMachineRequestObjects struct {
	// machine is the Machine.
	Machine clusterv1.Machine `json:"machine"`

	// infrastructureMachine is the infrastructure machine.
	InfrastructureMachine runtime.RawExtension `json:"infrastructureMachine"`

	// bootstrapConfig is the bootstrap config. It is empty if the Machine has none.
	BootstrapConfig runtime.RawExtension `json:"bootstrapConfig"`
}

var _ RequestObject = &CanUpdateMachineRequest{}

// +kubebuilder:object:root=true

// CanUpdateMachineRequest is the request of the hook CanUpdateMachine.
type CanUpdateMachineRequest struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRequest are the fields of all requests.
	CommonRequest `json:",inline"`

	// current are the objects as they are.
	Current CanUpdateMachineRequestObjects `json:"current"`

	// desired are the objects as they should be.
	Desired CanUpdateMachineRequestObjects `json:"desired"`
}

var _ ResponseObject = &CanUpdateMachineResponse{}

// +kubebuilder:object:root=true

// CanUpdateMachineResponse is the response of the hook CanUpdateMachine.
type CanUpdateMachineResponse struct {
	metav1.TypeMeta `json:",inline"`
	// CommonResponse are the fields of all responses.
	CommonResponse `json:",inline"`

	// machinePatch is for machine in current: what can change in place of its
	// spec.
	// +optional
	MachinePatch Patch `json:"machinePatch,omitempty,omitzero"`

	// infrastructureMachinePatch is for infrastructureMachine in current: what can change in place of its
	// spec.
	// +optional
	InfrastructureMachinePatch Patch `json:"infrastructureMachinePatch,omitempty,omitzero"`

	// bootstrapConfigPatch is for bootstrapConfig in current: what can change in place of its
	// spec.
	// +optional
	BootstrapConfigPatch Patch `json:"bootstrapConfigPatch,omitempty,omitzero"`
}

// CanUpdateMachine is called for what an extension can change of a Machine in place. Responses must be deterministic.
func CanUpdateMachine(*CanUpdateMachineRequest, *CanUpdateMachineResponse) {
}

// CanUpdateMachineSetRequestObjects are a MachineSet and its templates.
type CanUpdateMachineSetRequestObjects struct {
	// machineSet is the MachineSet.
	MachineSet clusterv1.MachineSet `json:"machineSet"`

	// infrastructureMachineTemplate is the template of infrastructure machines.
	InfrastructureMachineTemplate runtime.RawExtension `json:"infrastructureMachineTemplate"`

	// bootstrapConfigTemplate is the template of bootstrap configs. It is empty if there is none.
	BootstrapConfigTemplate runtime.RawExtension `json:"bootstrapConfigTemplate"`
}

var _ RequestObject = &CanUpdateMachineSetRequest{}

// +kubebuilder:object:root=true

// CanUpdateMachineSetRequest is the request of the hook CanUpdateMachineSet.
type CanUpdateMachineSetRequest struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRequest are the fields of all requests.
	CommonRequest `json:",inline"`

	// current are the objects as they are.
	Current CanUpdateMachineSetRequestObjects `json:"current"`

	// desired are the objects as they should be.
	Desired CanUpdateMachineSetRequestObjects `json:"desired"`
}

var _ ResponseObject = &CanUpdateMachineSetResponse{}

// +kubebuilder:object:root=true

// CanUpdateMachineSetResponse is the response of the hook CanUpdateMachineSet.
type CanUpdateMachineSetResponse struct {
	metav1.TypeMeta `json:",inline"`
	// CommonResponse are the fields of all responses.
	CommonResponse `json:",inline"`

	// machineSetPatch is for machineSet in current: what can change in place of its
	// spec.template.spec.
	// +optional
	MachineSetPatch Patch `json:"machineSetPatch,omitempty,omitzero"`

	// infrastructureMachineTemplatePatch is for infrastructureMachineTemplate in current: what can change in place of its
	// spec.template.spec.
	// +optional
	InfrastructureMachineTemplatePatch Patch `json:"infrastructureMachineTemplatePatch,omitempty,omitzero"`

	// bootstrapConfigTemplatePatch is for bootstrapConfigTemplate in current: what can change in place of its
	// spec.template.spec.
	// +optional
	BootstrapConfigTemplatePatch Patch `json:"bootstrapConfigTemplatePatch,omitempty,omitzero"`
}

// CanUpdateMachineSet is called for what an extension can change of the Machines of a MachineSet in place. Responses must be
// deterministic.
func CanUpdateMachineSet(*CanUpdateMachineSetRequest, *CanUpdateMachineSetResponse) {
}

// UpdateMachineRequestObjects are a Machine and its objects.
type UpdateMachineRequestObjects struct {
	// machine is the Machine.
	Machine clusterv1.Machine `json:"machine"`

	// infrastructureMachine is the infrastructure machine.
	InfrastructureMachine runtime.RawExtension `json:"infrastructureMachine"`

	// bootstrapConfig is the bootstrap config. It is empty if the Machine has none.
	BootstrapConfig runtime.RawExtension `json:"bootstrapConfig"`
}

var _ RequestObject = &UpdateMachineRequest{}

// +kubebuilder:object:root=true

// UpdateMachineRequest is the request of the hook UpdateMachine.
type UpdateMachineRequest struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRequest are the fields of all requests.
	CommonRequest `json:",inline"`

	// desired are the objects as they should be.
	Desired UpdateMachineRequestObjects `json:"desired"`
}

var _ RetryResponseObject = &UpdateMachineResponse{}

// +kubebuilder:object:root=true

// UpdateMachineResponse is the response of the hook UpdateMachine.
type UpdateMachineResponse struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRetryResponse are the fields of responses of hooks that can block.
	CommonRetryResponse `json:",inline"`
}

// UpdateMachine is called to update a Machine in place, and again until the response has no retryAfterSeconds.
func UpdateMachine(*UpdateMachineRequest, *UpdateMachineResponse) {
}

func registerInPlaceHooks(b *runtimecatalog.Builder) {
	register := func(hook runtimecatalog.Hook, summary, description string) {
		b.RegisterHook(hook, &runtimecatalog.HookMeta{
			Tags: []string{"In-Place Update Hooks"}, Summary: summary, Description: description, PayloadVersion: clusterv1.GroupVersion.Version,
		})
	}
	register(CanUpdateMachine, "Lists what an extension can change of a Machine in place",
		"If the patched current objects are the desired ones, the Machine is updated in place; otherwise it is replaced.")
	register(CanUpdateMachineSet, "Lists what an extension can change of the Machines of a MachineSet in place",
		"If the patched current objects are the desired ones, the Machines are updated in place; otherwise they are replaced.")
	register(UpdateMachine, "Updates a Machine in place",
		"The update is in progress while the response has a non-zero retryAfterSeconds, and complete when it has none.")
}
