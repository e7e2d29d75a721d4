package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/test/fault/history"
)

const (
	operatorAPI = "operator.cluster.x-k8s.io/v1alpha2"

	// firstRelease and secondRelease are the releases in the repository.
	firstRelease  = "v2.0.0"
	secondRelease = "v2.0.1"

	// userTemplate is an object of a user that belongs to no Cluster, userCluster one that does.
	userTemplate = "users"
	userCluster  = "needed"

	// verbose is the argument of a changed manager.
	verbose = "--v=4"

	// settings is a RoleBinding whose role, which the API server does not allow to change, differs between the releases.
	settings = "capim-settings"
)

// declaration is a provider that the scenarios of the operator declare.
type declaration struct {
	kind, name  string
	manifest    string // its path in the repository
	label       string // the name of its entry in the inventory
	release     string // the beginning of the names of ConfigMaps with its releases
	deployment  string
	webhook     string // the Service of its webhooks
	definesUser bool   // its kinds are those of userTemplate and userCluster
}

func coreDeclaration() declaration {
	return declaration{
		kind:       "CoreProvider",
		name:       "cluster-api",
		manifest:   "cluster-api/latest/core-components.yaml",
		label:      "cluster-api",
		release:    "core-cluster-api-",
		deployment: "capi-controller-manager",
		webhook:    "capi-webhook-service",
	}
}

func infrastructureDeclaration() declaration {
	return declaration{
		kind: "InfrastructureProvider", name: "in-memory", label: "infrastructure-in-memory", release: "infrastructure-in-memory-",
		manifest:   "infrastructure-in-memory/latest/infrastructure-components-in-memory-development.yaml",
		deployment: "capim-controller-manager", webhook: "capim-webhook-service", definesUser: true,
	}
}

func declarations() []declaration {
	return []declaration{coreDeclaration(), infrastructureDeclaration()}
}

// Served returns the Deployments of the providers, with the Service of their webhooks.
func Served() map[string]string {
	served := map[string]string{}
	for _, d := range declarations() {
		served[d.deployment] = d.webhook
	}
	return served
}

// operated returns the scenarios of the operator. Both providers are in the namespace of the run.
func operated() []Scenario {
	install := Scenario{
		Name: "operator-install", Change: []Change{Declare("")}, Done: []Condition{Operated(secondRelease)}, Limits: Limits{Specs: 1},
	}
	edit := Scenario{
		Name: "operator-edit", Change: []Change{editProviders(func(_ declaration, spec map[string]any) {
			spec["manager"] = map[string]any{"verbosity": int64(4)}
		})}, Done: []Condition{Operated(firstRelease, verbose)}, Limits: Limits{Specs: 3}, Probe: ProbeWebhooks,
	}
	upgrade := Scenario{
		Name: "operator-upgrade", Change: []Change{editProviders(func(_ declaration, spec map[string]any) {
			spec["version"] = secondRelease
		})}, Done: []Condition{Operated(secondRelease), renewed}, Limits: Limits{Specs: 3}, Probe: ProbeWebhooks, Recreated: []string{settings},
	}
	remove := Scenario{
		Name: "operator-delete", Change: []Change{deleteInfrastructure}, Done: []Condition{infrastructureGone}, Limits: Limits{Specs: 1},
	}
	needed := Scenario{
		Name: "operator-delete-needed", Change: []Change{deleteInfrastructure, deletionBlocked, deleteUserCluster},
		Done: []Condition{infrastructureGone}, Limits: Limits{Specs: 1},
	}
	existing := []Scenario{edit, upgrade, remove, needed}
	for i := range existing {
		existing[i].Prepare, existing[i].Prepared = Declare(firstRelease), Operated(firstRelease)
		existing[i].Arrange = createUserObjects(existing[i].Name == needed.Name)
	}
	all := append([]Scenario{install}, existing...)
	for i := range all {
		all[i].Operator, all[i].Discard, all[i].Discarded = true, discardProviders, discarded
	}
	return all
}

// Installed returns the kinds of objects that providers consist of, and that the operator or users write.
func Installed() []history.Kind {
	kind := func(group, version, resource string) history.Kind {
		return history.Kind{
			GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource}, Namespaced: true,
		}
	}
	var all []history.Kind
	for _, resource := range []string{"secrets", "configmaps", "events", "services", "serviceaccounts"} {
		all = append(all, kind("", "v1", resource))
	}
	all = append(all, kind("apps", "v1", "deployments"), kind("rbac.authorization.k8s.io", "v1", "roles"),
		kind("rbac.authorization.k8s.io", "v1", "rolebindings"))
	for _, resource := range []string{
		"coreproviders", "bootstrapproviders", "controlplaneproviders", "infrastructureproviders",
		"ipamproviders", "addonproviders", "runtimeextensionproviders",
	} {
		all = append(all, kind(operatorv1.GroupVersion.Group, operatorv1.GroupVersion.Version, resource))
	}
	for _, one := range []history.Kind{
		kind("", "v1", "namespaces"),
		kind("rbac.authorization.k8s.io", "v1", "clusterroles"), kind("rbac.authorization.k8s.io", "v1", "clusterrolebindings"),
		kind("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
		kind("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations"),
		kind("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations"),
	} {
		one.Namespaced, one.Label = false, clusterv1.ProviderNameLabel
		all = append(all, one)
	}
	inventory := kind("apiextensions.k8s.io", "v1", "customresourcedefinitions")
	inventory.Namespaced, inventory.Label = false, clusterctlv1.ClusterctlCoreLabel+"="+clusterctlv1.ClusterctlCoreLabelInventoryValue
	all = append(all, inventory)
	for _, one := range []history.Kind{
		kind(clusterctlv1.GroupVersion.Group, clusterctlv1.GroupVersion.Version, "providers"),
		kind("infrastructure.cluster.x-k8s.io", "v1alpha1", "inmemoryclusters"),
		kind("infrastructure.cluster.x-k8s.io", "v1alpha1", "inmemorymachinetemplates"),
	} {
		one.Defined = true
		all = append(all, one)
	}
	return all
}

// ReleaseAgain adds a second release to a repository. It differs in its version, and in some objects of the infrastructure provider.
func ReleaseAgain(repository string) error {
	files, err := filepath.Glob(filepath.Join(repository, "*", firstRelease, "*.yaml"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s has no release %s", repository, firstRelease)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		first := string(content)
		second := strings.ReplaceAll(first, firstRelease, secondRelease)
		if strings.HasSuffix(infrastructureDeclaration().manifest, "/"+filepath.Base(file)) {
			first, second = first+own(firstRelease), second+own(secondRelease)
		}
		next := filepath.Join(filepath.Dir(filepath.Dir(file)), secondRelease, filepath.Base(file))
		err = errors.Join(os.WriteFile(file, []byte(first), 0o600), os.MkdirAll(filepath.Dir(next), 0o700),
			os.WriteFile(next, []byte(second), 0o600))
		if err != nil {
			return err
		}
	}
	return nil
}

// own returns the objects of the infrastructure provider that only one release has, and a RoleBinding that cannot be changed to the other.
func own(release string) string {
	name := "capim-" + strings.ReplaceAll(release, ".", "-")
	return fmt.Sprintf(`
---
apiVersion: v1
kind: ConfigMap
metadata: {name: %[1]s, namespace: capim-system}
data: {release: %[2]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: %[1]s, namespace: capim-system}
rules:
- {apiGroups: [""], resources: [configmaps], resourceNames: [%[1]s], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[3]s, namespace: capim-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}
subjects:
- {kind: ServiceAccount, name: capim-manager, namespace: capim-system}
`, name, release, settings)
}

// Declare creates the provider objects. Without a version, the core provider gets the latest one, and the other the second.
func Declare(version string) Change {
	return func(ctx context.Context, t Target) error {
		for _, d := range declarations() {
			o := object(operatorAPI, d.kind, t.Namespace, d.name)
			spec := map[string]any{"fetchConfig": map[string]any{"url": filepath.Join(t.Releases, d.manifest)}}
			switch {
			case version != "":
				spec["version"] = version
			case d.definesUser:
				spec["version"] = secondRelease
			}
			o.Object["spec"] = spec
			if err := ignoreExists(t.Client.Create(ctx, o)); err != nil {
				return err
			}
		}
		return nil
	}
}

// editProviders changes the specs of all provider objects.
func editProviders(edit func(d declaration, spec map[string]any)) Change {
	return func(ctx context.Context, t Target) error {
		for _, d := range declarations() {
			o := object(operatorAPI, d.kind, t.Namespace, d.name)
			if err := t.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			spec, _, err := unstructured.NestedMap(o.Object, "spec")
			if err != nil {
				return err
			}
			edit(d, spec)
			o.Object["spec"] = spec
			if err := t.Client.Update(ctx, o); err != nil {
				return err
			}
		}
		return nil
	}
}

// createUserObjects creates objects of users, of kinds that the infrastructure provider defines, when its webhooks respond.
func createUserObjects(needed bool) Change {
	return func(ctx context.Context, t Target) error {
		objects := []*unstructured.Unstructured{template(t.Namespace)}
		if needed {
			cluster := object(infrastructureAPI, "InMemoryCluster", t.Namespace, userCluster)
			cluster.SetLabels(map[string]string{clusterv1.ClusterNameLabel: userCluster})
			objects = append(objects, cluster)
		}
		var last error
		err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			for _, o := range objects {
				if last = ignoreExists(t.Client.Create(ctx, o.DeepCopy())); last != nil {
					return false, nil
				}
			}
			return true, nil
		})
		return errors.Join(err, last)
	}
}

func template(namespace string) *unstructured.Unstructured {
	o := object(infrastructureAPI, "InMemoryMachineTemplate", namespace, userTemplate)
	o.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{}}}
	return o
}

// ProbeWebhooks fails if the webhooks of a provider do not respond.
func ProbeWebhooks(ctx context.Context, t Target) error {
	probed := template(t.Namespace)
	probed.SetName("probe")
	cluster := object(clusterAPI, "Cluster", t.Namespace, "probe")
	cluster.Object["spec"] = map[string]any{"paused": true}
	for _, o := range []*unstructured.Unstructured{probed, cluster} {
		if err := t.Client.Create(ctx, o, client.DryRunAll); err != nil {
			return err
		}
	}
	return nil
}

func deleteInfrastructure(ctx context.Context, t Target) error {
	d := infrastructureDeclaration()
	return client.IgnoreNotFound(t.Client.Delete(ctx, object(operatorAPI, d.kind, t.Namespace, d.name)))
}

// deletionBlocked fails, and is retried, until the provider object reports that its provider is needed.
func deletionBlocked(ctx context.Context, t Target) error {
	d := infrastructureDeclaration()
	o := object(operatorAPI, d.kind, t.Namespace, d.name)
	if err := t.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	ready := string(operatorv1.ReadyCondition)
	if reason := Reason(o, ready); reason != operatorv1.DeletionBlockedReason || !strings.Contains(Message(o, ready), userCluster) {
		return fmt.Errorf("condition Ready has reason %q", reason)
	}
	return nil
}

func deleteUserCluster(ctx context.Context, t Target) error {
	return client.IgnoreNotFound(t.Client.Delete(ctx, object(infrastructureAPI, "InMemoryCluster", t.Namespace, userCluster)))
}

// Operated is true when both providers are installed in a version, as their objects, the inventory and the Deployments say, and
// the managers have some arguments.
func Operated(version string, args ...string) Condition {
	return func(now history.State) error {
		for _, d := range declarations() {
			if err := errors.Join(d.ready(now, version), d.installed(now, version), d.runs(now, version, args)); err != nil {
				return err
			}
		}
		return noJournal(now)
	}
}

// ready checks the provider object.
func (d declaration) ready(now history.State, version string) error {
	o := now[history.Key{Kind: d.kind, Name: d.name}]
	if o == nil {
		return fmt.Errorf("%s %s does not exist", d.kind, d.name)
	}
	if have, _, _ := unstructured.NestedString(o.Object, "status", "installedVersion"); have != version {
		return fmt.Errorf("status.installedVersion of %s is %q, want %s", d.kind, have, version)
	}
	for _, t := range []clusterv1.ConditionType{
		operatorv1.PreflightCheckCondition, operatorv1.ProviderInstalledCondition, operatorv1.ReadyCondition,
	} {
		if status := Status(o, string(t)); status != "True" {
			return fmt.Errorf("condition %s of %s is %q", t, d.kind, status)
		}
	}
	return observed(o)
}

// installed checks the entry in the inventory, and the ConfigMap with the release.
func (d declaration) installed(now history.State, version string) error {
	entry := now[history.Key{Kind: "Provider", Name: d.label}]
	if entry == nil {
		return fmt.Errorf("the inventory does not have %s", d.label)
	}
	if have, _, _ := unstructured.NestedString(entry.Object, "version"); have != version {
		return fmt.Errorf("the inventory has %s %s, want %s", d.label, have, version)
	}
	if now[history.Key{Kind: "ConfigMap", Name: d.release + version}] == nil {
		return fmt.Errorf("release %s of %s is not in a ConfigMap", version, d.label)
	}
	return nil
}

// runs checks the Deployment.
func (d declaration) runs(now history.State, version string, args []string) error {
	o := now[history.Key{Kind: "Deployment", Name: d.deployment}]
	if o == nil {
		return fmt.Errorf("deployment %s does not exist", d.deployment)
	}
	if Status(o, "Available") != "True" || observed(o) != nil || Number(o, "status", "updatedReplicas") != 1 ||
		Number(o, "status", "replicas") != 1 {
		return fmt.Errorf("deployment %s is not available", d.deployment)
	}
	containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	for _, one := range containers {
		container, _ := one.(map[string]any)
		image, _, _ := unstructured.NestedString(container, "image")
		has, _, _ := unstructured.NestedStringSlice(container, "args")
		if !strings.HasSuffix(image, ":"+version) {
			return fmt.Errorf("deployment %s has image %s, want %s", d.deployment, image, version)
		}
		for _, arg := range args {
			if !slices.Contains(has, arg) {
				return fmt.Errorf("deployment %s has arguments %v, want %s", d.deployment, has, arg)
			}
		}
	}
	return nil
}

// IsJournal reports whether an object is a Secret with the journal of a change.
func IsJournal(o *unstructured.Unstructured) bool {
	return o.GetKind() == "Secret" && o.GetLabels()[clusterctlv1.ClusterctlCoreLabel] == "upgrade"
}

func noJournal(now history.State) error {
	for _, o := range now.Of("Secret") {
		if IsJournal(o) {
			return fmt.Errorf("the journal %s is left", o.GetName())
		}
	}
	return nil
}

// renewed is true when the objects of the first release only are gone.
func renewed(now history.State) error {
	for _, kind := range []string{"ConfigMap", "Role"} {
		for _, o := range now.Of(kind) {
			if o.GetName() == "capim-v2-0-0" {
				return fmt.Errorf("%s %s is left", kind, o.GetName())
			}
		}
	}
	return nil
}

// infrastructureGone is true when the provider and its object are deleted, and the definitions of its kinds are not.
func infrastructureGone(now history.State) error {
	d := infrastructureDeclaration()
	for key, o := range now {
		switch {
		case key.Kind == d.kind:
			return fmt.Errorf("%s still exists", d.kind)
		case isComponent(o) && o.GetLabels()[clusterv1.ProviderNameLabel] == d.label:
			return fmt.Errorf("%s %s still exists", key.Kind, key.Name)
		}
	}
	return noJournal(now)
}

// isComponent reports whether an object is deleted with its provider.
func isComponent(o *unstructured.Unstructured) bool {
	kept := o.GetKind() == "CustomResourceDefinition" || o.GetKind() == "Namespace"
	return o.GetLabels()[clusterv1.ProviderNameLabel] != "" && !kept
}

// discardProviders deletes the objects of users, and then the provider objects.
func discardProviders(ctx context.Context, t Target) error {
	for _, kind := range []string{"InMemoryMachineTemplate", "InMemoryCluster"} {
		err := t.Client.DeleteAllOf(ctx, object(infrastructureAPI, kind, "", ""), client.InNamespace(t.Namespace))
		if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	for _, d := range slices.Backward(declarations()) {
		if err := client.IgnoreNotFound(t.Client.Delete(ctx, object(operatorAPI, d.kind, t.Namespace, d.name))); err != nil {
			return err
		}
	}
	return nil
}

// discarded is true when no provider object and no component is left, except definitions.
func discarded(now history.State) error {
	for key, o := range now {
		if strings.HasPrefix(o.GetAPIVersion(), operatorv1.GroupVersion.Group) || key.Kind == "Provider" || isComponent(o) {
			return fmt.Errorf("%s %s still exists", key.Kind, key.Name)
		}
	}
	return noJournal(now)
}
