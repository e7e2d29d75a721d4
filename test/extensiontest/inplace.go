package extensiontest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// InPlace is an extension that updates Machines in place: it can make all changes, except for those in some fields, and takes two calls for
// each. The zero value is ready to use.
type InPlace struct {
	// Cannot are the fields of specs that it cannot change.
	Cannot []string

	mu      sync.Mutex
	started map[string]bool
	updated map[string]int
}

// fields are an object as JSON.
type fields = map[string]any

// ServeHTTP answers the hooks Discovery, CanUpdateMachine, CanUpdateMachineSet and UpdateMachine.
func (e *InPlace) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Current, Desired struct {
			Machine, InfrastructureMachine, BootstrapConfig                    fields
			MachineSet, InfrastructureMachineTemplate, BootstrapConfigTemplate fields
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response := fields{"status": "Success", "message": ""}
	switch {
	case strings.HasSuffix(r.URL.Path, "/discovery"):
		var handlers []any
		for name, hook := range map[string]string{
			"can-update": "CanUpdateMachine", "can-update-set": "CanUpdateMachineSet", "update": "UpdateMachine",
		} {
			of := fields{"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": hook}
			handlers = append(handlers, fields{"name": name, "requestHook": of})
		}
		response["handlers"] = handlers
	case strings.HasSuffix(r.URL.Path, "/can-update"):
		is, wanted := request.Current, request.Desired
		for name, objects := range map[string][2]fields{
			"machinePatch":               {is.Machine, wanted.Machine},
			"infrastructureMachinePatch": {is.InfrastructureMachine, wanted.InfrastructureMachine},
			"bootstrapConfigPatch":       {is.BootstrapConfig, wanted.BootstrapConfig},
		} {
			response[name] = fields{"patchType": "JSONMergePatch", "patch": SpecPatch(objects[0], objects[1], e.Cannot...)}
		}
	case strings.HasSuffix(r.URL.Path, "/can-update-set"):
		is, wanted := request.Current, request.Desired
		for name, objects := range map[string][2]fields{
			"machineSetPatch":                    {is.MachineSet, wanted.MachineSet},
			"infrastructureMachineTemplatePatch": {is.InfrastructureMachineTemplate, wanted.InfrastructureMachineTemplate},
			"bootstrapConfigTemplatePatch":       {is.BootstrapConfigTemplate, wanted.BootstrapConfigTemplate},
		} {
			response[name] = fields{"patchType": "JSONMergePatch", "patch": TemplatePatch(objects[0], objects[1], e.Cannot...)}
		}
	case strings.HasSuffix(r.URL.Path, "/update"):
		response["retryAfterSeconds"] = e.update(nameOf(request.Desired.Machine))
	default:
		http.NotFound(w, r)
		return
	}
	if err := json.NewEncoder(w).Encode(response); err != nil {
		panic(err) // The response is made of JSON.
	}
}

// SpecPatch returns a merge patch from the spec of an object to that of another one, without some fields.
func SpecPatch(from, to map[string]any, without ...string) []byte {
	is, _ := from["spec"].(fields)
	wanted, _ := to["spec"].(fields)
	patch := fields{}
	for key := range is {
		patch[key] = wanted[key]
	}
	maps.Copy(patch, wanted)
	for _, key := range without {
		delete(patch, key)
	}
	raw, err := json.Marshal(fields{"spec": patch})
	if err != nil {
		panic(err) // It was JSON before.
	}
	return raw
}

// TemplatePatch returns a merge patch from spec.template.spec of an object to that of another one, without some fields.
func TemplatePatch(from, to map[string]any, without ...string) []byte {
	template := func(object fields) fields {
		spec, _ := object["spec"].(fields)
		of, _ := spec["template"].(fields)
		return of
	}
	raw, err := json.Marshal(fields{"spec": fields{"template": json.RawMessage(SpecPatch(template(from), template(to), without...))}})
	if err != nil {
		panic(err) // It was JSON before.
	}
	return raw
}

// update begins an update, or completes it. It returns when to call again, in seconds.
func (e *InPlace) update(machine string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.started == nil {
		e.started, e.updated = map[string]bool{}, map[string]int{}
	}
	if e.started[machine] = !e.started[machine]; e.started[machine] {
		return 1
	}
	e.updated[machine]++
	return 0
}

// Updated returns the names of the Machines whose updates were completed, sorted.
func (e *InPlace) Updated() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.updated))
}

func nameOf(object fields) string {
	metadata, _ := object["metadata"].(fields)
	name, _ := metadata["name"].(string)
	return name
}
