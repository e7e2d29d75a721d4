package journey

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// Live takes the Clusters that are ready, and their providers, through what comes after their creation: an upgrade of Kubernetes, then of
// each provider, and a move to a management cluster of capi.
func (p *Providers) Live() {
	p.described()
	p.upgradeKubernetes()
	for _, name := range p.names {
		p.upgradeProvider(name)
	}
	for _, c := range p.subjects {
		c.Eventually("the Cluster is ready with the upgraded provider", Ready, SameMachines((*Snapshot).ControlPlane, p.before[c.Namespace]),
			SameMachines((*Snapshot).Workers, p.before[c.Namespace]), c.WorkloadMatches)
	}
	p.move()
}

// unavailable checks that explain names the provider's Deployment, which does not run, as what a Cluster waits for.
func (p *Providers) unavailable() {
	p.t.Helper()
	for _, name := range p.names {
		r := p.releases[name]
		for _, namespace := range p.namespaces {
			if !p.whole[namespace] || !strings.HasPrefix(namespace, name+"-") {
				continue
			}
			c := p.subject(p.Management, namespace, namespace)
			why := "capi does not run containers"
			if p.options.Kubeconfig != "" {
				why = "FailedMount" // cert-manager has issued no certificate.
			}
			c.Eventually("explain names what does not run", c.Explains("ProviderUnavailable Deployment", "infrastructure-"+name, why))
			if report, err := c.explained(); err != nil || report.Causes[0].Object.Namespace != r.namespace {
				p.t.Errorf("%s: the cause is not in namespace %s: %+v: %v", namespace, r.namespace, report.Causes, err)
			}
			break
		}
	}
}

// subject returns the Cluster of a template.
func (p *Providers) subject(m *Management, namespace, name string) *Subject {
	return &Subject{World: &World{Management: m, Namespace: namespace, t: p.t, timeout: conditionTimeout}, Name: name}
}

// described checks what describe and get kubeconfig show of the ready Clusters.
func (p *Providers) described() {
	p.t.Helper()
	for _, c := range p.subjects {
		// Conditions of v1beta2 are written up to ten seconds later.
		testenv.Eventually(p.t, "describe shows a Cluster that is ready", func() error { return p.describes(c) })
		r := p.clusterctl(p.tools, "get", "kubeconfig", c.Name, "--namespace", c.Namespace)
		if want := fmt.Sprintf("server: https://%s:%d", p.options.Host, p.ports[c.Namespace]); r.Failed || !strings.Contains(r.Out, want) {
			p.t.Errorf("the kubeconfig does not have %s: %s", want, r)
		}
	}
}

// describes returns an error unless describe shows that a Cluster is available, and its infrastructure.
func (p *Providers) describes(c *Subject) error {
	infrastructure := c.Snapshot().Cluster.Spec.InfrastructureRef.Kind
	r := p.clusterctl(p.tools, "describe", "cluster", c.Name, "--namespace", c.Namespace)
	ready := slices.ContainsFunc(strings.Split(r.Out, "\n"), func(line string) bool {
		return strings.HasPrefix(line, fmt.Sprintf("Cluster %s/%s", c.Namespace, c.Name)) &&
			strings.Contains(strings.Join(strings.Fields(line), " "), " True Available ")
	})
	if r.Failed || !ready || !strings.Contains(r.Out, fmt.Sprintf("%s %s/", infrastructure, c.Namespace)) {
		return fmt.Errorf("want a Cluster that is available, with its %s: %s", infrastructure, r)
	}
	return nil
}

// upgradeKubernetes upgrades all ready Clusters: those with a class as planned, others by the versions of their control plane and
// MachineDeployments.
func (p *Providers) upgradeKubernetes() {
	p.t.Helper()
	before, planned := map[string]*Snapshot{}, 0
	for _, c := range p.subjects {
		before[c.Namespace] = c.Snapshot()
		if c.Snapshot().Cluster.Spec.Topology == nil {
			p.upgradeParts(c)
			continue
		}
		planned++
		p.upgradePlanned(c)
	}
	if planned == 0 {
		p.t.Error("no ready Cluster has a class")
	}
	for _, c := range p.subjects {
		c.Eventually("the Cluster is upgraded", Ready, ControlPlanes(1), desiredWorkers, Version(newer),
			NewMachines((*Snapshot).ControlPlane, before[c.Namespace]), NewMachines((*Snapshot).Workers, before[c.Namespace]), c.WorkloadMatches)
		p.before[c.Namespace] = c.Snapshot()
	}
}

// upgradePlanned plans an upgrade of the Cluster as it is read, with another version, which replaces every Machine, and does it.
func (p *Providers) upgradePlanned(c *Subject) {
	p.t.Helper()
	live := object(clusterv1.GroupVersion.String(), "Cluster", c.Namespace, c.Name)
	testenv.Must(p.t, p.Client.Get(p.t.Context(), c.Key(), live))
	testenv.Must(p.t, unstructured.SetNestedField(live.Object, newer, "spec", "topology", "version"))
	text, err := yaml.Marshal(live.Object)
	testenv.Must(p.t, err)
	r := p.tools.Clusterctl(p.t.Context(), string(text), "alpha", "topology", "plan", "--file", "-", "--namespace", c.Namespace,
		"--output", "json", "--kubeconfig", p.Kubeconfig)
	if r.Failed {
		p.t.Fatal(r)
	}
	plan := struct {
		Rounds []struct{ Rollouts []struct{ Machines []string } }
	}{}
	testenv.Must(p.t, json.Unmarshal([]byte(r.Out), &plan))
	var replaced, present []string
	for _, round := range plan.Rounds {
		for _, rollout := range round.Rollouts {
			replaced = append(replaced, rollout.Machines...)
		}
	}
	for _, m := range c.Snapshot().Machines.Items {
		present = append(present, m.Name)
	}
	slices.Sort(replaced)
	slices.Sort(present)
	if diff := cmp.Diff(present, replaced); diff != "" {
		p.t.Errorf("%s: Machines that the plan of an upgrade replaces (-present +planned):\n%s\n%s", c.Namespace, diff, r)
	}
	c.Change(func(cluster *clusterv1.Cluster) { cluster.Spec.Topology.Version = newer })
}

// upgradeParts changes the versions of a Cluster without a class.
func (p *Providers) upgradeParts(c *Subject) {
	p.t.Helper()
	snapshot := c.Snapshot()
	for i := range snapshot.ControlPlanes.Items {
		k := &controlplanev1.KubeadmControlPlane{}
		testenv.Must(p.t, p.Client.Get(p.t.Context(), client.ObjectKeyFromObject(&snapshot.ControlPlanes.Items[i]), k))
		before := k.DeepCopy()
		k.Spec.Version = newer
		testenv.Must(p.t, p.Client.Patch(p.t.Context(), k, client.MergeFrom(before)))
	}
	for i := range snapshot.Deployments.Items {
		d := &clusterv1.MachineDeployment{}
		testenv.Must(p.t, p.Client.Get(p.t.Context(), client.ObjectKeyFromObject(&snapshot.Deployments.Items[i]), d))
		before, version := d.DeepCopy(), newer
		d.Spec.Template.Spec.Version = &version
		testenv.Must(p.t, p.Client.Patch(p.t.Context(), d, client.MergeFrom(before)))
	}
}

// next returns the patch version after that of a release.
func (r providerRelease) next() string {
	n := strings.LastIndex(r.version, ".")
	patch := 0
	_, _ = fmt.Sscan(r.version[n+1:], &patch) // It is a number.
	return fmt.Sprintf("%s.%d", r.version[:n], patch+1)
}

// publish adds the next version to the local repository of a provider. It is the same release, but its Deployment has no replicas: that
// is how the upgrade, which waits for the new manager, ends where the manager cannot run.
func (p *Providers) publish(name string) {
	p.t.Helper()
	r := p.releases[name]
	from := filepath.Join(filepath.Dir(p.tools.config), "infrastructure-"+name, r.version)
	to := filepath.Join(filepath.Dir(from), r.next())
	testenv.Must(p.t, os.Mkdir(to, 0o750))
	files, err := filepath.Glob(filepath.Join(from, "*"))
	testenv.Must(p.t, err)
	for _, file := range files {
		if filepath.Base(file) != "infrastructure-components.yaml" {
			testenv.Must(p.t, os.Symlink(file, filepath.Join(to, filepath.Base(file))))
		}
	}
	components, err := os.ReadFile(filepath.Join(from, "infrastructure-components.yaml"))
	testenv.Must(p.t, err)
	documents := strings.Split(string(components), "\n---\n")
	for i, document := range documents {
		if strings.Contains(document, "\nkind: Deployment\n") {
			document = strings.Replace(document, "\n  replicas: 1\n", "\n", 1)
			documents[i] = strings.Replace(document, "\nspec:\n", "\nspec:\n  replicas: 0\n", 1)
		}
	}
	testenv.Must(p.t, os.WriteFile(filepath.Join(to, "infrastructure-components.yaml"), []byte(strings.Join(documents, "\n---\n")), 0o600))
}

// upgradeProvider upgrades a provider to its next version, as upgrade plan proposes.
func (p *Providers) upgradeProvider(name string) {
	p.t.Helper()
	p.publish(name)
	r, label := p.releases[name], "infrastructure-"+name
	proposed := []string{label, r.namespace, "InfrastructureProvider", r.version, r.next()}
	plan := p.clusterctl(p.tools, "upgrade", "plan")
	if plan.Failed || !slices.ContainsFunc(strings.Split(plan.Out, "\n"), func(line string) bool {
		return slices.Equal(strings.Fields(line), proposed)
	}) {
		p.t.Errorf("the plan does not have %s of %s: %s", r.next(), name, plan)
	}
	p.webhooks.restore(label)
	result := p.clusterctl(p.toolsFor(name), "upgrade", "apply", "--infrastructure", name+":"+r.next())
	if result.Failed {
		p.t.Fatal(result)
	}
	p.t.Log(result)
	if p.webhooks.inject(label) == 0 || p.webhooks.conversions(label) == 0 {
		p.t.Errorf("%s has no webhooks", name)
	}
	w := &World{Management: p.Management, t: p.t}
	if diff := cmp.Diff(map[string]string{label: r.next()}, w.installed(label)); diff != "" {
		p.t.Errorf("version of %s (-want +got):\n%s", name, diff)
	}
	r.version = r.next()
	p.releases[name] = r
}

// move moves the ready Clusters to another management cluster, with the same providers, where they remain what they are.
func (p *Providers) move() {
	p.t.Helper()
	target := p.embedded()
	source, webhooks := p.Management, p.webhooks
	p.Management, p.webhooks = target, newProviderWebhooks(p.t, target.Client, p.options.Host)
	for _, name := range p.names {
		p.init(name)
	}
	startSimulation(p.t, target, p.definitions(), &simulation{host: p.options.Host, ports: p.ports, whole: p.whole})
	p.target, p.Management, p.webhooks = target, source, webhooks
	for i, c := range p.subjects {
		p.subjects[i] = p.moveTo(c, target)
		p.moved[c.Namespace] = true
	}
}

// MoveBack moves the ready Clusters back from the management cluster of capi, the first one while nothing answers webhooks at first.
func (p *Providers) MoveBack() {
	p.t.Helper()
	p.moveUnanswered(p.subjects[0], "infrastructure-"+p.names[0])
	for i, c := range p.subjects {
		p.subjects[i] = p.moveTo(c, p.Management)
		p.moved[c.Namespace] = false
	}
}

// moveUnanswered tries to move a Cluster back while the target cannot call the webhooks of its provider. Another move will continue.
func (p *Providers) moveUnanswered(c *Subject, label string) {
	p.t.Helper()
	p.takeAlong(c, p.Management)
	p.webhooks.restore(label)
	r := c.Tools.Clusterctl(p.t.Context(), "", "move", "--namespace", c.Namespace,
		"--kubeconfig", c.Kubeconfig, "--to-kubeconfig", p.Kubeconfig)
	if !r.Failed || !strings.Contains(r.Err, "failed calling webhook") {
		p.t.Errorf("nothing answers webhooks in the target, want an error, got %s", r)
	}
	p.t.Log(r)
	if !c.Snapshot().Cluster.Spec.Paused {
		p.t.Errorf("%s: the Cluster is not paused in the source while it is being moved", c.Namespace)
	}
	p.webhooks.inject(label)
	p.webhooks.conversions(label)
}

// moveTo moves a Cluster, and returns it in the other management cluster.
func (p *Providers) moveTo(c *Subject, target *Management) *Subject {
	p.t.Helper()
	p.takeAlong(c, target)
	before := c.Identity().Machines
	w := c.World.Move(target)
	moved := c.Moved(w)
	moved.Eventually("the Cluster is ready after the move", Ready, ControlPlanes(1), desiredWorkers, Version(newer), moved.WorkloadMatches)
	if diff := cmp.Diff(before, w.Identity().Machines); diff != "" {
		p.t.Errorf("%s: Machines (-before +after the move):\n%s", c.Namespace, diff)
	}
	for _, crd := range p.definitions() {
		if err := p.empty(c.Client, &crd, client.InNamespace(c.Namespace)); err != nil {
			p.t.Errorf("%s in the source: %v", crd.Name, err)
		}
	}
	return moved
}

// takeAlong labels what a move would leave behind, as the warnings of a dry run propose.
func (p *Providers) takeAlong(c *Subject, target *Management) {
	p.t.Helper()
	r := c.Tools.Clusterctl(p.t.Context(), "", "move", "--dry-run", "--namespace", c.Namespace,
		"--kubeconfig", c.Kubeconfig, "--to-kubeconfig", target.Kubeconfig)
	if r.Failed {
		p.t.Fatal(r)
	}
	for line := range strings.Lines(r.Err) {
		rest, found := strings.CutPrefix(line, "Warning: ")
		if words := strings.Fields(rest); found && strings.Contains(rest, "stays behind") {
			name := strings.TrimPrefix(words[1], c.Namespace+"/")
			label := c.Tools.Kubectl(p.t.Context(), "", "--kubeconfig", c.Kubeconfig, "-n", c.Namespace,
				"label", words[0], name, clusterctlv1.ClusterctlMoveLabel+"=")
			if label.Failed {
				p.t.Fatal(label)
			}
		}
	}
}

// at returns the management cluster with the objects of a namespace.
func (p *Providers) at(namespace string) *Management {
	if p.moved[namespace] {
		return p.target
	}
	return p.Management
}

// deleteOne deletes one provider of the other management cluster, with all that belongs to it.
func (p *Providers) deleteOne() {
	p.t.Helper()
	source := p.Management
	defer func() { p.Management = source }()
	p.Management = p.target
	name := p.names[0]
	if r := p.clusterctl(p.tools, "delete", "--infrastructure", name, "--include-crd", "--include-namespace"); r.Failed {
		p.t.Fatal(r)
	}
	label := "infrastructure-" + name
	for _, crd := range p.definitions() {
		if crd.Labels[clusterv1.ProviderNameLabel] == label && crd.DeletionTimestamp == nil {
			p.t.Errorf("CustomResourceDefinition %s is left", crd.Name)
		}
	}
	w := &World{Management: p.Management, t: p.t}
	left := w.installed()
	for _, other := range slices.Sorted(maps.Keys(p.releases)) {
		if _, found := left["infrastructure-"+other]; found != (other != name) {
			p.t.Errorf("%s is installed: %t", other, found)
		}
	}
}
