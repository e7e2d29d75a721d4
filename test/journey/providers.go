package journey

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/topologyplan"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// Providers are the releases of other projects' infrastructure providers in a management cluster of their own, in which cert-manager and
// the managers of these providers do not run: certificates and webhooks are simulated, and machines are those of the in-memory provider.
// Its methods take them and their Clusters through what users do with clusterctl: Install, Apply, Provision, Live, MoveBack, Delete, in
// this order.
type Providers struct {
	*Management
	options  ProviderOptions
	t        *testing.T
	tools    *Tools
	folder   string // with the releases
	releases map[string]providerRelease
	names    []string
	webhooks *providerWebhooks
	// namespaces are those of templates that are accepted, and plans those of templates with a class, by namespace.
	namespaces []string
	plans      map[string]planned
	applied    []*unstructured.Unstructured
	// ports has the port of the API server of each template, by namespace, and whole those whose Clusters become ready.
	ports map[string]int
	whole map[string]bool
	// subjects are the Clusters that are upgraded and moved, and before what they were like after that upgrade, by namespace.
	subjects []*Subject
	before   map[string]*Snapshot
	// target is the management cluster to which those in moved, by namespace, are moved.
	target *Management
	moved  map[string]bool
}

// ProviderOptions are a management cluster for Providers, and what is done in it.
type ProviderOptions struct {
	// Tools are the users' programs; this project's providers are those of their repository, or of the clusterctl.yaml at Config, if set.
	Tools  *Tools
	Config string
	// Names are those of the releases, such as aws.
	Names []string
	// All applies all templates of the releases, not only those whose Clusters are upgraded and moved.
	All bool
	// Kubeconfig is that of a management cluster with Nodes. Empty: a new one of capi.
	Kubeconfig string
	// Host is an address of this machine that management clusters reach: of webhooks and of the API servers of simulated machines. Empty:
	// 127.0.0.1.
	Host string
	// Simulate has the in-memory provider of the management cluster with Nodes serve its API servers at Host, at these ports.
	Simulate func(m *Management, ports string)
}

// ProviderNames returns the names of all releases, sorted.
func ProviderNames() []string { return slices.Sorted(maps.Keys(providerReleases(managedHost))) }

// NewProviders installs this project's providers in the management cluster. Without the releases, the test is skipped.
func NewProviders(t *testing.T, o ProviderOptions) *Providers {
	t.Helper()
	facts := cmp.Or(os.Getenv("CAPI_FACTS_DIR"), filepath.Join(o.Tools.Root, "..", "shared", "facts"))
	folder, err := filepath.Abs(filepath.Join(facts, "data", "providers"))
	testenv.Must(t, err)
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("there are no published releases: set CAPI_FACTS_DIR to the directory with data/providers (%v)", err)
	}
	o.Host = cmp.Or(o.Host, managedHost)
	p := &Providers{
		options: o, t: t, tools: NewRepository(t, o.Tools).Tools, folder: folder, releases: providerReleases(o.Host), names: o.Names,
		plans: map[string]planned{}, ports: map[string]int{}, whole: map[string]bool{}, before: map[string]*Snapshot{}, moved: map[string]bool{},
	}
	p.tools.Infrastructure = inMemory
	maps.DeleteFunc(p.releases, func(name string, _ providerRelease) bool { return !slices.Contains(o.Names, name) })
	p.configure(cmp.Or(o.Config, o.Tools.config))
	if o.Kubeconfig == "" {
		p.Management = p.embedded()
	} else {
		testenv.Must(t, p.tools.install(t.Context(), o.Kubeconfig))
		p.Management = p.tools.Connect(t, o.Kubeconfig)
		o.Simulate(p.Management, simulatedPorts)
	}
	var namespaces []string
	for _, r := range p.releases {
		namespaces = append(namespaces, r.namespace)
	}
	p.webhooks = newProviderWebhooks(t, p.Client, p.options.Host, namespaces...)
	p.webhooks.nodes = o.Kubeconfig != ""
	return p
}

// embedded starts a management cluster of capi with this project's providers.
func (p *Providers) embedded() *Management {
	p.t.Helper()
	s := NewStandalone(p.t, p.tools)
	testenv.Must(p.t, p.tools.install(p.t.Context(), s.kubeconfig()))
	m := s.Management()
	m.moveInMemory(p.t, p.options.Host)
	return m
}

// Install installs each provider, and checks that the plan of upgrades has all of them.
func (p *Providers) Install() {
	p.t.Helper()
	for _, name := range p.names {
		p.init(name)
	}
	p.upgradePlan()
}

// Apply generates Clusters from the templates, plans those with a class, and applies them.
func (p *Providers) Apply() {
	p.t.Helper()
	for _, name := range p.names {
		p.t.Run(name, func(t *testing.T) { p.templates(t, name) })
	}
	if p.webhooks.calls.Load() == 0 {
		p.t.Error("the providers' webhooks were not called")
	}
}

// Provision waits until the Clusters wait for their infrastructure, and explains that. Then it simulates infrastructure, until the end of
// the test, and waits until the Clusters are ready.
func (p *Providers) Provision() {
	p.t.Helper()
	p.provisioning()
	p.nothingPlanned()
	p.unavailable()
	p.secrets()
	startSimulation(p.t, p.Management, p.definitions(), &simulation{host: p.options.Host, ports: p.ports, whole: p.whole})
	p.ready()
}

// configure writes configurations of clusterctl: that with this project's providers, and all others; and the same with the variables of
// each provider.
func (p *Providers) configure(ours string) {
	p.t.Helper()
	config, err := os.ReadFile(ours)
	testenv.Must(p.t, err)
	before, after, found := strings.Cut("\n"+string(config), "\nproviders:\n")
	if !found {
		p.t.Fatalf("%s has no list of providers", ours)
	}
	all := fmt.Appendf(nil, "cert-manager: {url: %s}\nEXP_MACHINE_POOL: \"true\"\n%s\nproviders:\n", p.certManager(), before)
	for _, name := range p.names {
		all = fmt.Appendf(all, "- {name: %s, type: InfrastructureProvider, url: %s}\n", name, p.link(name, p.releases[name]))
	}
	all = append(all, after...)
	testenv.Must(p.t, os.WriteFile(p.tools.config, all, 0o600))
	for _, name := range p.names {
		own := slices.Clone(all)
		for variable, value := range p.releases[name].variables {
			own = fmt.Appendf(own, "%s: %s\n", variable, value)
		}
		testenv.Must(p.t, os.WriteFile(p.toolsFor(name).config, own, 0o600))
	}
}

// certManager writes the kinds of cert-manager as its release, and returns the file.
func (p *Providers) certManager() string {
	p.t.Helper()
	file := filepath.Join(filepath.Dir(p.tools.config), "cert-manager", "v1.14.4", "cert-manager.yaml")
	testenv.Must(p.t, os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, []byte(certManagerDefinitions), 0o600))
	return file
}

// link links the files of a release into a local repository, and returns the URL.
func (p *Providers) link(name string, r providerRelease) string {
	p.t.Helper()
	from := filepath.Join(p.folder, name+"-"+r.version)
	local := filepath.Join(filepath.Dir(p.tools.config), "infrastructure-"+name)
	to := filepath.Join(local, r.version)
	testenv.Must(p.t, os.MkdirAll(to, 0o750))
	testenv.Must(p.t, os.Symlink(filepath.Join(from, "components.yaml"), filepath.Join(to, "infrastructure-components.yaml")))
	testenv.Must(p.t, os.Symlink(filepath.Join(from, "metadata.yaml"), filepath.Join(to, "metadata.yaml")))
	for _, file := range p.templateFiles(p.t, name) {
		testenv.Must(p.t, os.Symlink(file, filepath.Join(to, filepath.Base(file))))
	}
	return filepath.Join(local, "latest", "infrastructure-components.yaml")
}

// templateFiles returns the templates of a release.
func (p *Providers) templateFiles(t *testing.T, name string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(p.folder, name+"-"+p.releases[name].version, "templates", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s %s has no templates: %v", name, p.releases[name].version, err)
	}
	return files
}

// toolsFor returns tools with the variables of a provider.
func (p *Providers) toolsFor(name string) *Tools {
	tools := *p.tools
	tools.config = filepath.Join(filepath.Dir(p.tools.config), name+".yaml")
	return &tools
}

// toolsWithPort returns tools with the variables of a provider and of a template, which has the next port.
func (p *Providers) toolsWithPort(name, namespace string) *Tools {
	p.ports[namespace] = p.freePortBelow(p.t, simulatedLimit)
	tools := *p.toolsFor(name)
	config, err := os.ReadFile(tools.config)
	testenv.Must(p.t, err)
	for _, variable := range []string{"CONTROL_PLANE_ENDPOINT_PORT", "CLUSTER_APIENDPOINT_PORT"} {
		config = fmt.Appendf(config, "%s: '%d'\n", variable, p.ports[namespace])
	}
	tools.config = filepath.Join(filepath.Dir(tools.config), namespace+".yaml")
	testenv.Must(p.t, os.WriteFile(tools.config, config, 0o600))
	return &tools
}

// clusterctl runs clusterctl with the management cluster's kubeconfig.
func (p *Providers) clusterctl(tools *Tools, args ...string) Result {
	return tools.Clusterctl(p.t.Context(), "", append(args, "--kubeconfig", p.Kubeconfig)...)
}

// init installs a provider, the first one with cert-manager.
func (p *Providers) init(name string) {
	p.t.Helper()
	r := p.releases[name]
	args := []string{"init", "--infrastructure", name + ":" + r.version}
	first := p.webhooks.nodes && name == p.names[0]
	if first { // It does not become available: nothing creates the Secret with the certificate of its webhooks.
		args = append(args, "--wait-providers", "--wait-provider-timeout", "20")
	}
	result := p.clusterctl(p.toolsFor(name), args...)
	if result.Failed != first || first && !strings.Contains(result.Err, "FailedMount") {
		p.t.Fatal(result)
	}
	if first {
		p.t.Log(result)
		p.refuses(name)
	}
	if label := "infrastructure-" + name; p.webhooks.inject(label) == 0 || p.webhooks.conversions(label) == 0 {
		p.t.Errorf("%s has no webhooks", name)
	}
}

// refuses checks that create cluster reports webhooks without endpoints, and has created nothing.
func (p *Providers) refuses(name string) {
	p.t.Helper()
	template := filepath.Join(p.folder, name+"-"+p.releases[name].version, "templates", p.releases[name].whole)
	r := p.clusterctl(p.toolsFor(name), "create", "cluster", "refused", "--from", template, "--no-wait", "--target-namespace", "default",
		"--kubernetes-version", older)
	if want := "failed calling webhook"; !r.Failed || !strings.Contains(r.Err, want) {
		p.t.Errorf("want an error with %q, got %s", want, r)
	}
	p.t.Log(r)
	testenv.Must(p.t, p.noClusters())
}

// upgradePlan checks that the plan has every provider, and that their releases are the latest.
func (p *Providers) upgradePlan() {
	p.t.Helper()
	result := p.clusterctl(p.tools, "upgrade", "plan")
	if result.Failed {
		p.t.Fatal(result)
	}
	lines := strings.Split(result.Out, "\n")
	for name, r := range p.releases {
		want := []string{"infrastructure-" + name, r.namespace, "InfrastructureProvider", r.version, "Already", "up", "to", "date"}
		found := slices.ContainsFunc(lines, func(line string) bool { return slices.Equal(strings.Fields(line), want) })
		if !found {
			p.t.Errorf("%s is not in the plan:\n%s", name, result)
		}
	}
}

// templates generates every template of a provider and applies it to a namespace of its own.
func (p *Providers) templates(t *testing.T, name string) {
	t.Helper()
	r := p.releases[name]
	for _, file := range p.templateFiles(t, name) {
		base := filepath.Base(file)
		if !p.options.All && !r.lives(file) {
			continue
		}
		rejection := r.rejected[base]
		err := p.template(t, name, file, rejection != "")
		switch {
		case rejection == "" && err != nil:
			t.Errorf("%s: %v", base, err)
		case rejection != "" && (err == nil || !strings.Contains(err.Error(), rejection)):
			t.Errorf("%s: want an error with %q, got %v", base, rejection, err)
		}
	}
}

// template generates and applies a template, as a dry run or not.
func (p *Providers) template(t *testing.T, name, file string, dry bool) error {
	t.Helper()
	base := strings.TrimSuffix(filepath.Base(file), ".yaml")
	cluster := name + "-" + strings.TrimPrefix(base, "cluster-template-")
	p.whole[cluster] = p.releases[name].lives(file) || p.options.All && testenv.Soaks() && !strings.Contains(base, "windows")
	args := []string{
		"generate", "cluster", cluster, "--target-namespace", cluster, "--kubernetes-version", older,
		"--control-plane-machine-count", "1", "--worker-machine-count", "2",
	}
	if flavor, ok := strings.CutPrefix(base, "cluster-template"); ok {
		args = append(args, "--infrastructure", name+":"+p.releases[name].version, "--flavor", strings.TrimPrefix(flavor, "-"))
	} else {
		args = append(args, "--from", file)
	}
	result := p.clusterctl(p.toolsWithPort(name, cluster), args...)
	if result.Failed {
		return errors.New(result.String())
	}
	objects, err := parseObjects(result.Out)
	if err != nil {
		return err
	}
	err = client.IgnoreAlreadyExists(p.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}}))
	if err != nil {
		return err
	}
	var all []error
	if slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "ClusterClass" }) {
		created, _, err := p.plan(result.Out, cluster)
		if dry && err == nil {
			t.Errorf("%s is not accepted, but can be planned", base)
		}
		all = append(all, err)
		if !dry && err == nil {
			p.plans[cluster] = planned{result.Out, created}
		}
	}
	for _, o := range objects {
		all = append(all, p.create(t, o, dry))
	}
	if !dry {
		p.namespaces = append(p.namespaces, cluster)
		if p.releases[name].lives(file) {
			p.subjects = append(p.subjects, p.subject(p.Management, cluster, cluster))
		}
	}
	return errors.Join(all...)
}

// create creates an object as kubectl does: unknown fields are errors. The API server takes a moment to call webhooks where they were
// moved.
func (p *Providers) create(t *testing.T, o *unstructured.Unstructured, dry bool) error {
	t.Helper()
	options := []client.CreateOption{client.FieldValidation("Strict")}
	if dry {
		options = append(options, client.DryRunAll)
	}
	var err error
	testenv.Eventually(t, "webhooks are called", func() error {
		err = p.Client.Create(t.Context(), o, options...)
		if err != nil && (strings.Contains(err.Error(), "failed calling webhook") || strings.Contains(err.Error(), "conversion webhook for ")) {
			return err
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
	}
	if !dry {
		p.applied = append(p.applied, o)
	}
	return nil
}

// provisioning waits until every Cluster waits for its infrastructure, which it owns, and every topology is reconciled.
func (p *Providers) provisioning() {
	p.t.Helper()
	for _, namespace := range p.namespaces {
		testenv.Eventually(p.t, namespace, func() error {
			list := &clusterv1.ClusterList{}
			if err := p.Client.List(p.t.Context(), list, client.InNamespace(namespace)); err != nil {
				return err
			}
			for i := range list.Items {
				if err := p.isProvisioning(&list.Items[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func (p *Providers) isProvisioning(c *clusterv1.Cluster) error {
	// Some templates use a class that is in another file.
	topology := report.Find(c.GetV1Beta2Conditions(), clusterv1beta2.ClusterTopologyReconciledCondition)
	if topology != nil && topology.Reason == clusterv1beta2.ClusterTopologyReconciledClusterClassNotReconciledReason {
		return nil
	}
	if c.Spec.Topology != nil && !ConditionIsTrue(c, clusterv1.TopologyReconciledCondition) {
		return fmt.Errorf("Cluster %s: conditions %v", c.Name, c.Status.Conditions)
	}
	if c.Status.GetTypedPhase() != clusterv1.ClusterPhaseProvisioning || c.Spec.InfrastructureRef == nil {
		return fmt.Errorf("Cluster %s: phase %s, conditions %v", c.Name, c.Status.Phase, c.Status.Conditions)
	}
	ref := c.Spec.InfrastructureRef
	infrastructure := object(ref.APIVersion, ref.Kind, c.Namespace, ref.Name)
	if err := p.Client.Get(p.t.Context(), client.ObjectKeyFromObject(infrastructure), infrastructure); err != nil {
		return err
	}
	if owner := metav1.GetControllerOf(infrastructure); owner == nil || owner.UID != c.UID {
		return fmt.Errorf("%s %s is controlled by %v", ref.Kind, ref.Name, owner)
	}
	return nil
}

// planned is the first plan of a template with a class and a Cluster.
type planned struct {
	text    string
	created map[schema.GroupVersionKind]int
}

// plan returns how many objects of each kind a plan creates, and whether it changes anything.
func (p *Providers) plan(text, namespace string) (created map[schema.GroupVersionKind]int, changes bool, err error) {
	p.t.Helper()
	result := p.tools.Clusterctl(p.t.Context(), text, "alpha", "topology", "plan", "--file", "-", "--namespace", namespace, "--output", "json",
		"--kubeconfig", p.Kubeconfig)
	if result.Failed {
		return nil, false, errors.New(result.String())
	}
	plan := struct {
		Rounds []struct {
			Changes []struct{ Action, APIVersion, Kind string }
		}
	}{}
	if err := json.Unmarshal([]byte(result.Out), &plan); err != nil {
		return nil, false, err
	}
	created = map[schema.GroupVersionKind]int{}
	for _, round := range plan.Rounds {
		for _, c := range round.Changes {
			if c.Action == string(topologyplan.Created) {
				created[schema.FromAPIVersionAndKind(c.APIVersion, c.Kind)]++
			}
		}
	}
	return created, len(plan.Rounds) > 0, nil
}

// nothingPlanned checks that the objects of each plan were created, and no others, and that nothing is left to do.
func (p *Providers) nothingPlanned() {
	p.t.Helper()
	clusters := 0
	for namespace, before := range p.plans {
		owned := map[schema.GroupVersionKind]int{}
		for kind := range before.created {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(kind)
			labels := client.HasLabels{clusterv1.ClusterTopologyOwnedLabel}
			testenv.Must(p.t, p.Client.List(p.t.Context(), list, client.InNamespace(namespace), labels))
			owned[kind] = len(list.Items)
		}
		if diff := gocmp.Diff(before.created, owned); diff != "" {
			p.t.Errorf("%s: objects of the topology (-plan +got):\n%s", namespace, diff)
		}
		clusters += len(owned)
		if created, changes, err := p.plan(before.text, namespace); err != nil || changes {
			p.t.Errorf("%s: nothing is left to do, but the plan creates %v, changes %t: %v", namespace, created, changes, err)
		}
	}
	if clusters == 0 {
		p.t.Error("no template has a class and a Cluster")
	}
}

// secrets creates the Secrets with files of Machines that infrastructure providers would create.
func (p *Providers) secrets() {
	p.t.Helper()
	for kind, path := range map[schema.GroupVersionKind][]string{
		bootstrapv1.GroupVersion.WithKind("KubeadmConfigTemplate"):  {"spec", "template", "spec", "files"},
		controlplanev1.GroupVersion.WithKind("KubeadmControlPlane"): {"spec", "kubeadmConfigSpec", "files"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		testenv.Must(p.t, p.Client.List(p.t.Context(), list))
		for _, o := range list.Items {
			files, _, err := unstructured.NestedSlice(o.Object, path...)
			testenv.Must(p.t, err)
			for _, file := range files {
				from, found, err := unstructured.NestedStringMap(file.(map[string]any), "contentFrom", "secret")
				testenv.Must(p.t, err)
				if !found {
					continue
				}
				secret := &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: from["name"]},
					Data:       map[string][]byte{from["key"]: []byte("{}")},
				}
				testenv.Must(p.t, client.IgnoreAlreadyExists(p.Client.Create(p.t.Context(), secret)))
			}
		}
	}
}

// ready waits until every Cluster with a KubeadmControlPlane has got as far as it can: whole ones are ready, with all Machines of control
// plane and MachineDeployments; others have a control plane Machine whose infrastructure is from the provider's template, and never starts.
func (p *Providers) ready() {
	p.t.Helper()
	list := &clusterv1.ClusterList{}
	testenv.Must(p.t, p.Client.List(p.t.Context(), list))
	whole := 0
	for i := range list.Items {
		c := &list.Items[i]
		if ref := c.Spec.ControlPlaneRef; ref == nil || ref.Kind != "KubeadmControlPlane" {
			continue
		}
		subject := p.subject(p.Management, c.Namespace, c.Name)
		if !p.whole[c.Namespace] {
			subject.Eventually("the control plane has a Machine", p.startedControlPlane)
			continue
		}
		whole++
		subject.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), desiredWorkers, Version(older), subject.WorkloadMatches)
	}
	if whole < len(p.releases) {
		p.t.Errorf("%d Clusters became ready, want one of each of the %d providers", whole, len(p.releases))
	}
}

// startedControlPlane is true when the control plane has one Machine, with bootstrap data and infrastructure.
func (p *Providers) startedControlPlane(s *Snapshot) error {
	machines := s.ControlPlane()
	if len(machines) != 1 {
		return fmt.Errorf("there are %d Machines", len(machines))
	}
	if phase := machines[0].Status.GetTypedPhase(); phase != clusterv1.MachinePhaseProvisioning {
		return fmt.Errorf("the phase of Machine %s is %s", machines[0].Name, phase)
	}
	ref := machines[0].Spec.InfrastructureRef
	infrastructure := object(ref.APIVersion, ref.Kind, machines[0].Namespace, ref.Name)
	return p.Client.Get(p.t.Context(), client.ObjectKeyFromObject(infrastructure), infrastructure)
}

// desiredWorkers is true when the MachineDeployments have as many Machines as they want, which run.
func desiredWorkers(p *Snapshot) error {
	n := 0
	for _, d := range p.Deployments.Items {
		n += int(ptr.Deref(d.Spec.Replicas, 0))
	}
	return Workers(n)(p)
}

// Delete deletes everything: first what users applied, which --include-crd protects. In the other management cluster, it deletes one
// provider.
func (p *Providers) Delete() {
	p.t.Helper()
	everything := []string{"delete", "--all", "--include-crd", "--include-namespace"}
	if r := p.clusterctl(p.tools, everything...); !r.Failed || !strings.Contains(r.Err, "--include-crd: ") {
		p.t.Errorf("users' objects exist, want an error, got %s", r)
	}
	for _, clusters := range []bool{true, false} {
		for _, o := range p.applied {
			if (o.GetKind() == "Cluster") == clusters {
				testenv.Must(p.t, client.IgnoreNotFound(p.at(o.GetNamespace()).Client.Delete(p.t.Context(), o)))
			}
		}
		testenv.Eventually(p.t, "the Clusters are deleted", p.noClusters)
	}
	for _, crd := range p.definitions() {
		testenv.Eventually(p.t, crd.Name, func() error { return errors.Join(p.empty(p.Client, &crd), p.empty(p.target.Client, &crd)) })
	}
	if r := p.clusterctl(p.tools, everything...); r.Failed {
		p.t.Fatal(r)
	}
	for _, crd := range p.definitions() {
		if crd.DeletionTimestamp == nil {
			p.t.Errorf("CustomResourceDefinition %s is left", crd.Name)
		}
	}
	for _, name := range p.names {
		for _, kind := range []string{
			"admissionregistration.k8s.io/v1 MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration",
			"rbac.authorization.k8s.io/v1 ClusterRole", "rbac.authorization.k8s.io/v1 ClusterRoleBinding",
		} {
			apiVersion, kind, _ := strings.Cut(kind, " ")
			for _, o := range p.webhooks.list(apiVersion, kind, "infrastructure-"+name) {
				p.t.Errorf("%s %s is left", kind, o.GetName())
			}
		}
	}
	p.deleteOne()
}

func (p *Providers) noClusters() error {
	for _, m := range []*Management{p.Management, p.target} {
		if m == nil {
			continue
		}
		list := &clusterv1.ClusterList{}
		if err := m.Client.List(p.t.Context(), list); err != nil {
			return err
		}
		if n := len(list.Items); n > 0 {
			return fmt.Errorf("%d Clusters are left: conditions of %s: %v", n, list.Items[0].Name, list.Items[0].Status.Conditions)
		}
	}
	return nil
}

// definitions returns the CRDs of the providers of other projects.
func (p *Providers) definitions() []apiextensionsv1.CustomResourceDefinition {
	p.t.Helper()
	w := &World{Management: p.Management, t: p.t}
	_, crds := w.crds()
	return slices.DeleteFunc(crds, func(crd apiextensionsv1.CustomResourceDefinition) bool {
		return !strings.HasPrefix(crd.Labels[clusterv1.ProviderNameLabel], "infrastructure-")
	})
}

// empty returns an error if there are objects of a kind.
func (p *Providers) empty(api client.Client, crd *apiextensionsv1.CustomResourceDefinition, where ...client.ListOption) error {
	list := &metav1.PartialObjectMetadataList{}
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			list.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.ListKind})
		}
	}
	if err := api.List(p.t.Context(), list, where...); err != nil || len(list.Items) == 0 {
		return err
	}
	return fmt.Errorf("%d objects are left, such as %s/%s", len(list.Items), list.Items[0].Namespace, list.Items[0].Name)
}
