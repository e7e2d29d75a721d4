package kcptest

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// Updater is an extension that can make all changes of Machines in place, except for those in some fields.
type Updater struct {
	// Unregistered is true if no handler is registered.
	Unregistered bool
	// Cannot are the fields of specs that it cannot change.
	Cannot []string
	// Err is the error of calls.
	Err error
	// Asked is the number of calls.
	Asked int
}

// Handlers implements inplace.Caller.
func (u *Updater) Handlers(context.Context, runtimecatalog.Hook, client.Object) ([]string, error) {
	if u.Unregistered {
		return nil, nil
	}
	return []string{"update.x"}, nil
}

// CallOnly implements inplace.Caller: it patches the whole spec.
func (u *Updater) CallOnly(
	_ context.Context, _ runtimecatalog.Hook, _ client.Object, request runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject,
) error {
	u.Asked++
	asked, isRequest := request.(*runtimehooksv1.CanUpdateMachineRequest)
	answer, isResponse := response.(*runtimehooksv1.CanUpdateMachineResponse)
	if u.Err != nil {
		return u.Err
	}
	if !isRequest || !isResponse {
		return errors.New("the extension has a handler for CanUpdateMachine only")
	}
	is, errIs := json.Marshal(asked.Current.Machine)
	wanted, errWanted := json.Marshal(asked.Desired.Machine)
	var errs [3]error
	answer.MachinePatch, errs[0] = u.patch(is, wanted)
	answer.InfrastructureMachinePatch, errs[1] = u.patch(asked.Current.InfrastructureMachine.Raw, asked.Desired.InfrastructureMachine.Raw)
	answer.BootstrapConfigPatch, errs[2] = u.patch(asked.Current.BootstrapConfig.Raw, asked.Desired.BootstrapConfig.Raw)
	return errors.Join(append(errs[:], errIs, errWanted)...)
}

// patch returns the patch from one spec to another one.
func (u *Updater) patch(from, to []byte) (runtimehooksv1.Patch, error) {
	var is, wanted struct {
		Spec map[string]any `json:"spec"`
	}
	if err := errors.Join(json.Unmarshal(from, &is), json.Unmarshal(to, &wanted)); err != nil {
		return runtimehooksv1.Patch{}, err
	}
	patch := map[string]any{}
	for key := range is.Spec {
		patch[key] = wanted.Spec[key]
	}
	maps.Copy(patch, wanted.Spec)
	for _, key := range u.Cannot {
		delete(patch, key)
	}
	raw, err := json.Marshal(map[string]any{"spec": patch})
	return runtimehooksv1.Patch{PatchType: runtimehooksv1.JSONMergePatchType, Patch: raw}, err
}
