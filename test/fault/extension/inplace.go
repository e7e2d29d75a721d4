package extension

import (
	"context"
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/exp/runtime/server"
	"sigs.k8s.io/cluster-api/test/extensiontest"
	"sigs.k8s.io/cluster-api/test/managers"
)

const (
	// InPlaceLabel is the label of the namespaces whose Machines are updated in place.
	InPlaceLabel = "fault.example.com/in-place"

	inPlaceConfigName = "in-place"
	updatesSuffix     = ".updated-to"
	// callsPerUpdate is the number of calls of UpdateMachine for an update: the first fails, the second begins, the last completes it.
	callsPerUpdate = 3
)

// updater updates Machines in place. It is another server, because its hooks have payloads of v1beta2.
type updater struct{ client client.Client }

// StartInPlace serves the extension until the context ends, and returns when a manager has discovered it.
func StartInPlace(ctx context.Context, c client.Client, dir string) error {
	serving, err := managers.NewExtension(dir, runtimehooksv1.AddToCatalog)
	if err != nil {
		return err
	}
	u := &updater{client: c}
	if err := errors.Join(
		serving.AddExtensionHandler(server.ExtensionHandler{Hook: runtimehooksv1.CanUpdateMachine, Name: "can-update", HandlerFunc: u.can}),
		serving.AddExtensionHandler(server.ExtensionHandler{
			Hook: runtimehooksv1.CanUpdateMachineSet, Name: "can-update-set", HandlerFunc: u.canSet,
		}),
		serving.AddExtensionHandler(server.ExtensionHandler{Hook: runtimehooksv1.UpdateMachine, Name: "update", HandlerFunc: u.update}),
		serving.Serve(ctx),
	); err != nil {
		return err
	}
	return serving.Register(ctx, c, inPlaceConfigName, map[string]any{InPlaceLabel: "true"})
}

// can can change everything but versions.
func (*updater) can(_ context.Context, request *runtimehooksv1.CanUpdateMachineRequest, response *runtimehooksv1.CanUpdateMachineResponse) {
	is, wanted := request.Current, request.Desired
	isMachine, errIs := json.Marshal(is.Machine)
	wantedMachine, errWanted := json.Marshal(wanted.Machine)
	patch := extensiontest.SpecPatch
	if err := errors.Join(errIs, errWanted,
		patchWith(patch, isMachine, wantedMachine, &response.MachinePatch),
		patchWith(patch, is.InfrastructureMachine.Raw, wanted.InfrastructureMachine.Raw, &response.InfrastructureMachinePatch),
		patchWith(patch, is.BootstrapConfig.Raw, wanted.BootstrapConfig.Raw, &response.BootstrapConfigPatch),
	); err != nil {
		fail(response, err)
	}
}

// canSet is the same for the Machines of a MachineSet.
func (*updater) canSet(
	_ context.Context, request *runtimehooksv1.CanUpdateMachineSetRequest, response *runtimehooksv1.CanUpdateMachineSetResponse,
) {
	is, wanted := request.Current, request.Desired
	isSet, errIs := json.Marshal(is.MachineSet)
	wantedSet, errWanted := json.Marshal(wanted.MachineSet)
	patch := extensiontest.TemplatePatch
	if err := errors.Join(errIs, errWanted,
		patchWith(patch, isSet, wantedSet, &response.MachineSetPatch),
		patchWith(patch, is.InfrastructureMachineTemplate.Raw, wanted.InfrastructureMachineTemplate.Raw,
			&response.InfrastructureMachineTemplatePatch),
		patchWith(patch, is.BootstrapConfigTemplate.Raw, wanted.BootstrapConfigTemplate.Raw, &response.BootstrapConfigTemplatePatch),
	); err != nil {
		fail(response, err)
	}
}

// patchWith sets a patch from one object to another one, without versions.
func patchWith(of func(from, to map[string]any, without ...string) []byte, from, to []byte, into *runtimehooksv1.Patch) error {
	var before, after map[string]any
	if err := errors.Join(json.Unmarshal(from, &before), json.Unmarshal(to, &after)); err != nil {
		return err
	}
	*into = runtimehooksv1.Patch{PatchType: runtimehooksv1.JSONMergePatchType, Patch: of(before, after, "version")}
	return nil
}

// update records each call, and to what it has updated a Machine when it completes an update.
func (u *updater) update(
	ctx context.Context, request *runtimehooksv1.UpdateMachineRequest, response *runtimehooksv1.UpdateMachineResponse,
) {
	m, infrastructure := &request.Desired.Machine, &unstructured.Unstructured{}
	if err := json.Unmarshal(request.Desired.InfrastructureMachine.Raw, &infrastructure.Object); err != nil {
		fail(response, err)
		return
	}
	calls := 0
	err := change(ctx, u.client, m.Namespace, func(record *unstructured.Unstructured) error {
		calls = Calls(record, m.Name) + 1
		if calls%callsPerUpdate != 0 {
			return count(record, m.Name)
		}
		template := infrastructure.GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation]
		return errors.Join(count(record, m.Name), unstructured.SetNestedField(record.Object, template, "data", m.Name+updatesSuffix))
	})
	switch {
	case err != nil:
		fail(response, err)
	case calls%callsPerUpdate == 1:
		fail(response, errors.New("the machine does not respond"))
	case calls%callsPerUpdate != 0:
		response.SetRetryAfterSeconds(retryAfterSeconds)
		response.SetMessage("the machine is being changed")
	}
}

// UpdatedTo returns the template that a Machine was updated to in place according to the ConfigMap, which may be nil; empty if it was not.
func UpdatedTo(record *unstructured.Unstructured, machine string) string {
	return value(record, machine+updatesSuffix)
}
