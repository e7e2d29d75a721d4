package permission

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/test/fault/scenario"
	"sigs.k8s.io/cluster-api/test/managers"
)

// installation is how Cluster API v1.7 installs a component.
type installation struct {
	managers.Program
	// label is the provider label, prefix that of the names of objects, folder that of the reference data, lease the name of the Lease.
	label, prefix, namespace, folder, lease string
	// aggregate is the label of ClusterRoles that are aggregated into that of the manager. Empty: none are.
	aggregate string
	// args are those of the Deployment, besides those that all have.
	args []string
	// defaulted and validated are the kinds with webhooks.
	defaulted, validated []string
}

// installations returns the components of Cluster API v1.7.
func installations() []installation {
	programs := managers.Programs()
	core := []string{
		"Cluster", "ClusterClass", "Machine", "MachineSet", "MachineDeployment", "MachineHealthCheck", "MachinePool", "ClusterResourceSet",
		"ExtensionConfig",
	}
	bootstrap, controlPlane := []string{"KubeadmConfig", "KubeadmConfigTemplate"}, []string{"KubeadmControlPlane", "KubeadmControlPlaneTemplate"}
	inMemory := []string{"InMemoryCluster", "InMemoryClusterTemplate", "InMemoryMachine", "InMemoryMachineTemplate"}
	docker := []string{"DockerCluster", "DockerClusterTemplate"}
	all := []installation{
		{
			Program: programs[0], label: "cluster-api", prefix: "capi-", namespace: "capi-system", folder: "core",
			lease:     "controller-leader-election-capi",
			aggregate: "cluster.x-k8s.io/aggregate-to-manager",
			args: []string{"--feature-gates=MachinePool=true,ClusterResourceSet=true,ClusterTopology=true,RuntimeSDK=false," +
				"MachineSetPreflightChecks=false"},
			defaulted: core, validated: append(slices.Clip(core), "ClusterResourceSetBinding", "IPAddress", "IPAddressClaim"),
		},
		{
			Program: programs[1], label: "bootstrap-kubeadm", prefix: "capi-kubeadm-bootstrap-", namespace: "capi-kubeadm-bootstrap-system",
			folder:    "bootstrap-kubeadm",
			lease:     "kubeadm-bootstrap-manager-leader-election-capi",
			args:      []string{"--feature-gates=MachinePool=true,KubeadmBootstrapFormatIgnition=false", "--bootstrap-token-ttl=15m"},
			defaulted: bootstrap, validated: bootstrap,
		},
		{
			Program: programs[2], label: "control-plane-kubeadm", prefix: "capi-kubeadm-control-plane-",
			namespace: "capi-kubeadm-control-plane-system", folder: "controlplane-kubeadm",
			lease:     "kubeadm-control-plane-manager-leader-election-capi",
			aggregate: "kubeadm.controlplane.cluster.x-k8s.io/aggregate-to-manager",
			args:      []string{"--feature-gates=MachinePool=true,ClusterTopology=true,KubeadmBootstrapFormatIgnition=false"},
			defaulted: controlPlane, validated: controlPlane,
		},
		{
			Program: programs[3], label: "infrastructure-in-memory", prefix: "capim-", namespace: "capim-system", folder: "inmemory",
			lease:     "inmemory-controller-leader-election-capi",
			defaulted: inMemory, validated: inMemory,
		},
		{
			Program: managers.Docker(), label: "infrastructure-docker", prefix: "capd-", namespace: "capd-system", folder: "docker",
			lease:     "controller-leader-election-capd",
			args:      []string{"--feature-gates=MachinePool=true,ClusterTopology=true"},
			defaulted: docker, validated: append(slices.Clip(docker), "DockerMachineTemplate"),
		},
	}
	for i := range all {
		all[i].Gates, all[i].Keys = "", "" // The Deployment has all arguments.
	}
	return all
}

// refused returns the requests that are forbidden, by component, with how many there may be, which is what a manager needs to find out that
// it has no effect.
func refused() map[string]map[string]int {
	return map[string]map[string]int{
		"core": {
			"patch customresourcedefinitions.apiextensions.k8s.io": 1, // Objects are not migrated then.
			"list ipaddresses.ipam.cluster.x-k8s.io":               1, // to migrate them, if they are the first
		},
		"control-plane-kubeadm": {"patch customresourcedefinitions.apiextensions.k8s.io": 1},
	}
}

// mostWrites is how often a manager may write the same object. The walk takes half of that; one that writes again and again exceeds it soon.
const mostWrites = 120

// TestImageSwap runs this project's managers in the installation of Cluster API v1.7: its arguments, definitions, webhooks and permissions,
// with certificates that others issue. They wait until the leaders of that version end. What is not permitted has no effect on Clusters, and is
// not tried again and again.
func TestImageSwap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	definitions := filepath.Join(cmp.Or(os.Getenv("CAPI_FACTS_DIR"), filepath.Join(w.Root, "..", "shared", "facts")), "data", "crds-v1.7")
	if _, err := os.Stat(definitions); err != nil {
		t.Skipf("the CRDs of Cluster API v1.7 are absent: set CAPI_FACTS_DIR to the directory with data/crds-v1.7 (%v)", err)
	}
	for _, i := range installations() {
		if err := w.swap(t.Context(), i, definitions); err != nil {
			t.Fatalf("%s: %v", i.Name, err)
		}
	}
	w.observe()
	w.createObjects(withoutPools)
	led := w.handOver()
	w.waitFor("the class", scenario.ClassReady)
	w.walkSwapped()
	if err := w.stopManagers(); err != nil {
		t.Fatal(err)
	}
	log := readAudit(t, w.AuditLog)
	for _, m := range w.managers {
		for g, n := range log.denied[m.connection.User] {
			if most := refused()[m.Component][g.String()]; n > most {
				t.Errorf("%s: forbidden %d times, want at most %d: %s", m.Component, n, most, g)
			}
		}
		most, which := 0, ""
		for write, n := range log.writes(m.connection.User) {
			if n > most {
				most, which = n, write
			}
		}
		if t.Logf("%s: at most %d times %s", m.Component, most, which); most > mostWrites {
			t.Errorf("%s writes again and again", m.Component)
		}
		if early := log.before(m.connection.User, led); len(early) > 0 {
			t.Errorf("%s writes though it is not the leader: %s", m.Component, early)
		}
	}
}

// handOver waits until the managers have found that another process is their leader, and ends that one. It returns when it was still there.
func (w *world) handOver() time.Time {
	w.t.Helper()
	w.eventually("every manager tries to become the leader, and again", func(context.Context) error {
		log := readAudit(w.t, w.AuditLog)
		for _, m := range w.managers {
			asked := 0
			for _, e := range log.events {
				if e.User.Username == m.connection.User && e.Verb == "get" && e.ObjectRef != nil && e.ObjectRef.Resource == "leases" {
					asked++
				}
			}
			if asked < 2 {
				return fmt.Errorf("%s has asked for its Lease %d times", m.Component, asked)
			}
		}
		return nil
	})
	led := time.Now()
	for _, i := range installations() {
		w.do("the leader of "+i.Component+" ends", func(ctx context.Context, t scenario.Target) error {
			ended := []byte(`{"spec":{"holderIdentity":"","leaseDurationSeconds":1}}`)
			return t.Client.Patch(ctx, i.held(), client.RawPatch(types.MergePatchType, ended))
		})
	}
	return led
}

// held returns the Lease of the component while a manager of v1.7 is the leader.
func (i installation) held() *unstructured.Unstructured {
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	lease := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"holderIdentity": i.prefix + "controller-manager-0_v1.7", "leaseDurationSeconds": int64(3600), "leaseTransitions": int64(0),
		"acquireTime": now, "renewTime": now,
	}}}
	lease.SetAPIVersion("coordination.k8s.io/v1")
	lease.SetKind("Lease")
	lease.SetNamespace(i.namespace)
	lease.SetName(i.lease)
	return lease
}

// writes counts the writes of a user, by verb and object.
func (r requests) writes(user string) map[string]int {
	counts := map[string]int{}
	for _, e := range r.events {
		if e.User.Username == user && e.isWrite() && e.ObjectRef.Name != "" && e.ObjectRef.Resource != "leases" {
			counts[e.Verb+" "+e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource+" "+e.ObjectRef.Name]++
		}
	}
	return counts
}

// before returns the writes of a user that the API server has received before a time, other than to Leases and Events.
func (r requests) before(user string, t time.Time) []string {
	var early []string
	for _, e := range r.events {
		if e.User.Username == user && e.isWrite() && e.RequestReceivedTimestamp.Before(t) &&
			e.ObjectRef.Resource != "leases" && e.ObjectRef.Resource != "events" {
			early = append(early, e.Verb+" "+e.RequestURI)
		}
	}
	return early
}

// swap installs a component of v1.7, and runs our program in it.
func (w *world) swap(ctx context.Context, i installation, definitions string) error {
	rbac, err := i.permissions()
	if err != nil {
		return err
	}
	connection, err := w.Account(ctx, rbac)
	if err != nil {
		return err
	}
	m, err := managers.NewManager(w.Root, w.Dir, i.Name, i.Program, connection.Kubeconfig)
	if err != nil {
		return err
	}
	diagnostics, err := freeAddress()
	if err != nil {
		return err
	}
	m.Namespace = connection.Namespace
	m.Env = []string{"POD_NAME=" + i.prefix + "controller-manager-0", "POD_UID=0", "POD_IP=127.0.0.1"}
	m.Args = append([]string{"--leader-elect", "--diagnostics-address=" + diagnostics, "--insecure-diagnostics=false"}, i.args...)
	if i.Component == "infrastructure-in-memory" {
		m.Args = append(m.Args, "--debug-address=")
	}
	if err := w.Client.Create(ctx, i.held()); err != nil {
		return err
	}
	objects, err := i.definitions(filepath.Join(definitions, i.folder))
	if err != nil {
		return err
	}
	for _, o := range append(objects, i.webhooks("Mutating", "mutate", i.defaulted), i.webhooks("Validating", "validate", i.validated)) {
		m.Serves(o)
		if err := w.Client.Create(ctx, o); err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	w.managers = append(w.managers, component{Manager: m, connection: connection, diagnostics: diagnostics})
	return m.Start()
}

// permissions returns the ServiceAccount of v1.7, with its roles.
func (i installation) permissions() ([]*unstructured.Unstructured, error) {
	raw, err := os.ReadFile(filepath.Join("testdata", "rbac-v1.7.yaml"))
	if err != nil {
		return nil, err
	}
	rules := map[string][]any{}
	if err := yaml.Unmarshal(raw, &rules); err != nil {
		return nil, err
	}
	if len(rules[i.Component]) == 0 {
		return nil, fmt.Errorf("no rules of %s", i.Component)
	}
	seven := []any{"create", "delete", "get", "list", "patch", "update", "watch"}
	for _, rule := range rules[i.Component] {
		if r := rule.(map[string]any); slices.Equal(r["verbs"].([]any), []any{"seven"}) {
			r["verbs"] = seven
		}
	}
	bound := i.prefix + "manager-role"
	role := i.object("ClusterRole", "manager-role", map[string]any{"rules": rules[i.Component]})
	objects := []*unstructured.Unstructured{
		{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": i.namespace}}},
		{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{
			"name": i.prefix + "manager", "namespace": i.namespace,
		}}},
		role,
	}
	if i.aggregate != "" {
		role.SetLabels(map[string]string{i.aggregate: "true"})
		bound = i.prefix + "aggregated-manager-role"
		objects = append(objects, i.object("ClusterRole", "aggregated-manager-role", map[string]any{"aggregationRule": map[string]any{
			"clusterRoleSelectors": []any{map[string]any{"matchLabels": map[string]any{i.aggregate: "true"}}},
		}}))
	}
	election := i.object("Role", "leader-election-role", map[string]any{"rules": []any{
		map[string]any{"apiGroups": []any{""}, "resources": []any{"events"}, "verbs": []any{"create"}},
		map[string]any{"apiGroups": []any{"coordination.k8s.io"}, "resources": []any{"leases"}, "verbs": seven},
	}})
	election.SetNamespace(i.namespace)
	elects := i.object("RoleBinding", "leader-election-rolebinding", i.binding("Role", election.GetName()))
	elects.SetNamespace(i.namespace)
	return append(objects, election, elects, i.object("ClusterRoleBinding", "manager-rolebinding", i.binding("ClusterRole", bound))), nil
}

// object returns an object of RBAC.
func (i installation) object(kind, name string, fields map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: fields}
	o.SetAPIVersion("rbac.authorization.k8s.io/v1")
	o.SetKind(kind)
	o.SetName(i.prefix + name)
	return o
}

// binding returns the fields of a binding of a role to the ServiceAccount.
func (i installation) binding(kind, role string) map[string]any {
	return map[string]any{
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": i.prefix + "manager", "namespace": i.namespace}},
	}
}

// definitions returns the CRDs with what the published manifests add to the generated ones.
func (i installation) definitions(dir string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s has %d files: %w", dir, len(files), err)
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		objects, err := managers.ReadObjects(file)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	for _, crd := range all {
		crd.SetLabels(map[string]string{
			"clusterctl.cluster.x-k8s.io": "", "cluster.x-k8s.io/provider": i.label, "cluster.x-k8s.io/v1beta1": storage(crd),
		})
		conversion := map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"conversionReviewVersions": []any{"v1", "v1beta1"},
			"clientConfig": map[string]any{
				"service": map[string]any{"namespace": i.namespace, "name": i.prefix + "webhook-service", "path": "/convert"},
			},
		}}
		if err := unstructured.SetNestedMap(crd.Object, conversion, "spec", "conversion"); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// storage returns the version of a CRD that is stored, which implements the contract.
func storage(crd *unstructured.Unstructured) string {
	for _, v := range versions(*crd) {
		if version := v.(map[string]any); version["storage"] == true {
			return version["name"].(string)
		}
	}
	return ""
}

// walkSwapped creates, checks, scales, upgrades and deletes a Cluster of a class with ClusterResourceSets.
func (w *world) walkSwapped() {
	w.t.Helper()
	deleteResourceSet := w.resourceSets()
	size := scenario.Size{ControlPlanes: 1, Workers: 1}
	w.do("create", scenario.Create(size))
	w.waitFor("create", scenario.Ready(size))
	size.Workers = 3
	w.do("scale up", scenario.Resize(size))
	w.waitFor("scale up", scenario.Ready(size))
	w.do("health checks", scenario.CheckHealth)
	before := w.machines()
	w.do("remediation", scenario.LosePower(false, 1))
	w.waitFor("remediation", both(changed(before), scenario.Ready(size)))
	w.do("upgrade", scenario.Upgrade)
	w.waitFor("upgrade", both(scenario.Upgraded, scenario.Ready(size)))
	deleteResourceSet()
	w.do("delete", scenario.Delete)
	w.waitFor("delete", scenario.Absent)
}

// withoutPools removes the machine pools of a class: v1.7's in-memory provider has none.
func withoutPools(o *unstructured.Unstructured) bool {
	if o.GetKind() == "ClusterClass" {
		unstructured.RemoveNestedField(o.Object, "spec", "workers", "machinePools")
	}
	return o.GetKind() != "InMemoryMachinePoolTemplate"
}

// webhooks returns a webhook configuration; kind is Mutating or Validating.
func (i installation) webhooks(kind, verb string, kinds []string) *unstructured.Unstructured {
	var all []any
	for _, k := range kinds {
		group, version := i.groupVersion(k)
		plural := strings.ToLower(k) + "s"
		if strings.HasSuffix(k, "s") {
			plural = strings.ToLower(k) + "es"
		}
		operations := []any{"CREATE", "UPDATE"}
		if verb == "validate" && slices.Contains([]string{"Cluster", "ClusterClass", "IPAddress", "IPAddressClaim"}, k) {
			operations = append(operations, "DELETE")
		}
		all = append(all, i.webhook(
			fmt.Sprintf("%s.%s.%s", verb, strings.ToLower(k), group),
			fmt.Sprintf("/%s-%s-%s-%s", verb, strings.ReplaceAll(group, ".", "-"), version, strings.ToLower(k)),
			group, version, plural, operations,
		))
		if k == "KubeadmControlPlane" && verb == "validate" {
			all = append(all, i.webhook("validation-scale."+strings.ToLower(k)+"."+group,
				"/validate-scale-controlplane-cluster-x-k8s-io-v1beta1-kubeadmcontrolplane", group, version, plural+"/scale", []any{"UPDATE"}))
		}
	}
	o := &unstructured.Unstructured{Object: map[string]any{"webhooks": all}}
	o.SetAPIVersion("admissionregistration.k8s.io/v1")
	o.SetKind(kind + "WebhookConfiguration")
	o.SetName(i.prefix + strings.ToLower(kind) + "-webhook-configuration")
	return o
}

// webhook returns one webhook.
func (i installation) webhook(name, path, group, version, resource string, operations []any) map[string]any {
	return map[string]any{
		"name": name, "failurePolicy": "Fail", "matchPolicy": "Equivalent", "sideEffects": "None",
		"admissionReviewVersions": []any{"v1", "v1beta1"},
		"clientConfig": map[string]any{
			"service": map[string]any{"namespace": i.namespace, "name": i.prefix + "webhook-service", "path": path},
		},
		"rules": []any{map[string]any{
			"apiGroups": []any{group}, "apiVersions": []any{version}, "resources": []any{resource}, "operations": operations,
		}},
	}
}

// groupVersion returns the group and the version of a kind with webhooks.
func (i installation) groupVersion(kind string) (group, version string) {
	switch i.folder {
	case "bootstrap-kubeadm":
		return "bootstrap.cluster.x-k8s.io", "v1beta1"
	case "controlplane-kubeadm":
		return "controlplane.cluster.x-k8s.io", "v1beta1"
	case "inmemory":
		return "infrastructure.cluster.x-k8s.io", "v1alpha1"
	case "docker":
		return "infrastructure.cluster.x-k8s.io", "v1beta1"
	}
	switch kind {
	case "ClusterResourceSet", "ClusterResourceSetBinding":
		return "addons.cluster.x-k8s.io", "v1beta1"
	case "IPAddress", "IPAddressClaim":
		return "ipam.cluster.x-k8s.io", "v1beta1"
	case "ExtensionConfig":
		return "runtime.cluster.x-k8s.io", "v1alpha1"
	}
	return "cluster.x-k8s.io", "v1beta1"
}
