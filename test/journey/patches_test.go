package journey

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	runtimecatalog "sigs.k8s.io/cluster-api/exp/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/exp/runtime/hooks/api/v1alpha1"
	"sigs.k8s.io/cluster-api/exp/runtime/server"
	"sigs.k8s.io/cluster-api/exp/runtime/topologymutation"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/extensiontest"
	"sigs.k8s.io/cluster-api/test/managers"
)

// greeter is a runtime extension, written with the library for authors: it makes Machines greet, with the words of a variable that it
// defines.
type greeter struct {
	name    string // of its ExtensionConfig
	decoder runtime.Decoder

	mu sync.Mutex
	// calls is the number of calls of GeneratePatches.
	calls int
	// random makes each answer another one; rejects makes topologies invalid.
	random, rejects bool

	// port and dir are those of the server, endpoint how it is reached.
	port     int
	dir      string
	endpoint map[string]any
}

func (g *greeter) set(change func(*greeter)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(g)
}

func (g *greeter) generate(ctx context.Context, request *runtimehooksv1.GeneratePatchesRequest, response *runtimehooksv1.GeneratePatchesResponse) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
	topologymutation.WalkTemplates(ctx, g.decoder, request, response,
		func(_ context.Context, template runtime.Object, variables map[string]apiextensionsv1.JSON, _ runtimehooksv1.HolderReference) error {
			words, err := topologymutation.GetStringVariable(variables, "greeting")
			if err != nil {
				return err
			}
			if g.random {
				words += fmt.Sprint(g.calls)
			}
			switch t := template.(type) {
			case *controlplanev1.KubeadmControlPlaneTemplate:
				t.Spec.Template.Spec.KubeadmConfigSpec.PreKubeadmCommands = []string{"echo " + words}
			case *bootstrapv1.KubeadmConfigTemplate:
				t.Spec.Template.Spec.PreKubeadmCommands = []string{"echo " + words}
			}
			return nil
		})
}

func (g *greeter) validate(_ context.Context, _ *runtimehooksv1.ValidateTopologyRequest, response *runtimehooksv1.ValidateTopologyResponse) {
	g.mu.Lock()
	defer g.mu.Unlock()
	response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
	if g.rejects {
		response.SetStatus(runtimehooksv1.ResponseStatusFailure)
	}
}

func (*greeter) discover(_ context.Context, _ *runtimehooksv1.DiscoverVariablesRequest, response *runtimehooksv1.DiscoverVariablesResponse) {
	response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
	response.Variables = []clusterv1.ClusterClassVariable{{
		Name: "greeting", Schema: clusterv1.VariableSchema{OpenAPIV3Schema: clusterv1.JSONSchemaProps{Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"hello"`)}}},
	}}
}

// newGreeter returns the extension, which is not served yet.
func newGreeter(t *testing.T, name string) *greeter {
	t.Helper()
	scheme := runtime.NewScheme()
	testenv.Must(t, controlplanev1.AddToScheme(scheme))
	testenv.Must(t, bootstrapv1.AddToScheme(scheme))
	g := &greeter{name: name, decoder: serializer.NewCodecFactory(scheme).UniversalDecoder(controlplanev1.GroupVersion, bootstrapv1.GroupVersion)}
	dir, authority := servingCertificate(t)
	port, err := managers.FreePort()
	testenv.Must(t, err)
	g.port, g.dir = port, dir
	g.endpoint = map[string]any{"url": fmt.Sprintf("https://127.0.0.1:%d", port), "caBundle": base64.StdEncoding.EncodeToString(authority)}
	return g
}

// serve serves the extension until the test ends, or stop is called.
func (g *greeter) serve(t *testing.T) (stop func()) {
	t.Helper()
	catalog := runtimecatalog.New()
	testenv.Must(t, runtimehooksv1.AddToCatalog(catalog))
	s, err := server.New(server.Options{Catalog: catalog, Host: "127.0.0.1", Port: g.port, CertDir: g.dir})
	testenv.Must(t, err)
	for _, h := range []server.ExtensionHandler{
		{Hook: runtimehooksv1.GeneratePatches, Name: "generate", HandlerFunc: g.generate},
		{Hook: runtimehooksv1.ValidateTopology, Name: "validate", HandlerFunc: g.validate},
		{Hook: runtimehooksv1.DiscoverVariables, Name: "discover", HandlerFunc: g.discover},
	} {
		testenv.Must(t, s.AddExtensionHandler(h))
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		testenv.Must(t, <-done)
	})
	t.Cleanup(stop)
	testenv.Eventually(t, "the extension serves", func() error { return s.Healthy(nil) })
	return stop
}

// register registers the extension, and returns a class that it patches, besides the class's own patches, and with changes. The templates of the
// class are in v1beta1, which the extension reads.
func (g *greeter) register(w *World, changes ...func(*clusterv1.ClusterClass)) *clusterv1.ClusterClass {
	t := w.t
	t.Helper()
	name := w.Class(w.Tools.OlderTemplate())
	config := w.extensionConfig(g.name, g.endpoint)
	config.SetAnnotations(map[string]string{"runtime.cluster.x-k8s.io/cacheable": ""})
	testenv.Must(t, w.Client.Create(t.Context(), config))
	w.discovered(g.name, strings.ReplaceAll("True discover.NAME generate.NAME validate.NAME", "NAME", g.name))
	class := &clusterv1.ClusterClass{}
	testenv.Must(t, w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, class))
	before := class.DeepCopy()
	class.Spec.Patches = append(class.Spec.Patches, clusterv1.ClusterClassPatch{Name: "greet", External: &clusterv1.ExternalPatchDefinition{
		GenerateExtension: ptr.To("generate." + g.name), ValidateExtension: ptr.To("validate." + g.name), DiscoverVariablesExtension: ptr.To("discover." + g.name),
	}})
	for _, change := range changes {
		change(class)
	}
	testenv.Must(t, w.Client.Patch(t.Context(), class, client.MergeFrom(before)))
	testenv.Eventually(t, "the variable is discovered", func() error {
		testenv.Must(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(class), class))
		for _, v := range class.Status.Variables {
			if v.Name == "greeting" && v.Definitions[len(v.Definitions)-1].From == "greet" {
				return nil
			}
		}
		return fmt.Errorf("the variables of the class: %v", class.Status.Variables)
	})
	return class
}

// greets is true if new Machines greet with these words, in the control plane and in workers.
func (c *Subject) greets(words string) Condition {
	return func(p *Snapshot) error {
		got := strings.Join(p.ControlPlanes.Items[0].Spec.KubeadmConfigSpec.PreKubeadmCommands, "; ")
		ref := p.Deployments.Items[0].Spec.Template.Spec.Bootstrap.ConfigRef
		template := &unstructured.Unstructured{}
		template.SetGroupVersionKind(ref.GroupVersionKind())
		if err := c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: ref.Name}, template); err != nil {
			return err
		}
		commands, _, _ := unstructured.NestedStringSlice(template.Object, "spec", "template", "spec", "preKubeadmCommands")
		got += " and " + strings.Join(commands, "; ")
		if want := "echo " + words + " and echo " + words; got != want {
			return fmt.Errorf("commands of new Machines: %s, want %s", got, want)
		}
		return nil
	}
}

// notReconciled is true if the condition of the Cluster has this text.
func notReconciled(text string) Condition {
	return func(p *Snapshot) error {
		found := FindCondition(p.Cluster, clusterv1.TopologyReconciledCondition)
		if found == nil || found.Reason != clusterv1.TopologyReconcileFailedReason || !strings.Contains(found.Message, text) {
			return fmt.Errorf("the condition is %+v, want %q", found, text)
		}
		return nil
	}
}

// TestExternalPatches patches the templates of a class by an extension, besides the class's own patches, with a variable that the extension
// defines. An extension that is not deterministic, or rejects a topology, changes nothing, and a steady Cluster calls it not at all.
func TestExternalPatches(t *testing.T) {
	t.Parallel()
	w := newExtensionWorld(t)
	g := newGreeter(t, "greeter")
	g.serve(t)
	class := g.register(w)

	c := w.Subject(NewCluster("c", class.Name).Variable("startupDuration", "100ms").Workers(1).Build())
	c.Eventually("the Cluster is created, with the default", Ready, ControlPlanes(1), Workers(1), c.greets("hello"), reconciled(""))
	created := c.Snapshot()
	c.Change(setVariable("greeting", "moin"))
	c.Eventually("a change of the variable replaces all Machines", Ready, c.greets("moin"), reconciled(""),
		ControlPlanes(1), Workers(1), NewMachines((*Snapshot).ControlPlane, created), NewMachines((*Snapshot).Workers, created))

	// A change that extensions do not see is made after what is still to be done for the one before.
	detachTimeout(c, time.Minute)
	before := c.Snapshot()
	g.set(func(g *greeter) { g.calls = 0 })
	detachTimeout(c, 2*time.Minute)
	g.set(func(g *greeter) {
		if g.calls != 0 {
			t.Errorf("a steady Cluster called the extension %d times", g.calls)
		}
		g.random = true
	})
	same := []Condition{SameMachines((*Snapshot).ControlPlane, before), SameMachines((*Snapshot).Workers, before)}
	still := c.Always("nothing is replaced while the extension is not deterministic", append(same, c.greets("moin"))...)
	c.Change(setVariable("greeting", "servus"))
	c.Eventually("the extension is named", notReconciled("extension generate.greeter is not deterministic"),
		c.Explains("ExtensionFailed Cluster/c", "extension generate.greeter is not deterministic"))
	g.set(func(g *greeter) { g.rejects, g.random = true, false })
	c.Change(func(cluster *clusterv1.Cluster) { cluster.Labels["seen"] = "again" })
	c.Eventually("the topology is rejected", notReconciled(`patch "greet": validating the topology with "validate.greeter"`))
	still()
	g.set(func(g *greeter) { g.rejects = false })
	c.Change(func(cluster *clusterv1.Cluster) { cluster.Labels["seen"] = "last" })
	c.Eventually("the change is made", Ready, c.greets("servus"), reconciled(""), ControlPlanes(1), Workers(1),
		NewMachines((*Snapshot).ControlPlane, before), NewMachines((*Snapshot).Workers, before))
}

// detachTimeout changes a timeout of the control plane, and returns when the topology controller has made the change.
func detachTimeout(c *Subject, timeout time.Duration) {
	want := &metav1.Duration{Duration: timeout}
	c.Change(func(cluster *clusterv1.Cluster) { cluster.Spec.Topology.ControlPlane.NodeVolumeDetachTimeout = want })
	c.Eventually("the control plane has the timeout", reconciled(""), func(p *Snapshot) error {
		for _, cp := range p.ControlPlanes.Items {
			if !ptr.Equal(cp.Spec.MachineTemplate.NodeVolumeDetachTimeout, want) {
				return fmt.Errorf("the timeout of %s is %v", cp.Name, cp.Spec.MachineTemplate.NodeVolumeDetachTimeout)
			}
		}
		return nil
	})
}

// TestExtensionIsDown changes a Cluster while the server of the extension that patches it is down: the Cluster stays as it is, and goes on
// by itself when the server is back.
func TestExtensionIsDown(t *testing.T) {
	t.Parallel()
	w := newExtensionWorld(t)
	g := newGreeter(t, "down")
	stop := g.serve(t)
	class := g.register(w)
	c := w.Subject(NewCluster("c", class.Name).Variable("startupDuration", "100ms").Workers(1).Build())
	c.Eventually("the Cluster is created", Ready, ControlPlanes(1), Workers(1), c.greets("hello"), reconciled(""))

	before := c.Snapshot()
	stop()
	still := c.Always("nothing changes", SameMachines((*Snapshot).ControlPlane, before), SameMachines((*Snapshot).Workers, before), c.greets("hello"))
	c.Change(func(cluster *clusterv1.Cluster) {
		cluster.Spec.Topology.ControlPlane.NodeDrainTimeout = &metav1.Duration{Duration: time.Minute}
	})
	c.Eventually("what no request to the extension contains needs no answer", reconciled(""), func(p *Snapshot) error {
		for i := range p.ControlPlanes.Items {
			if d := p.ControlPlanes.Items[i].Spec.MachineTemplate.NodeDrainTimeout; d == nil || d.Duration != time.Minute {
				return fmt.Errorf("nodeDrainTimeout is %v", d)
			}
		}
		return nil
	})
	c.Change(setVariable("greeting", "moin"))
	const refused = "calling extension generate.down of hook GeneratePatches: the server refused the connection"
	c.Eventually("the condition says which extension is down", notReconciled(refused), c.Explains("ExtensionFailed Cluster/c", refused))
	c.Change(SetWorkers(2))
	c.Eventually("so do those after the next change", notReconciled(refused), Workers(1))
	still()
	g.serve(t)
	c.Eventually("the Cluster goes on by itself", Ready, c.greets("moin"), reconciled(""), ControlPlanes(1), Workers(2),
		NewMachines((*Snapshot).ControlPlane, before), NewMachines((*Snapshot).Workers, before))
}

// TestConflictingVariables has a class and an extension that define the same variable differently: Clusters set one value for each.
func TestConflictingVariables(t *testing.T) {
	t.Parallel()
	w := newExtensionWorld(t)
	g := newGreeter(t, "conflicting")
	g.serve(t)
	class := g.register(w, func(class *clusterv1.ClusterClass) {
		class.Spec.Variables = append(class.Spec.Variables, clusterv1.ClusterClassVariable{
			Name: "greeting", Required: true, Schema: clusterv1.VariableSchema{OpenAPIV3Schema: clusterv1.JSONSchemaProps{Type: "integer"}},
		})
		selector := clusterv1.PatchSelector{
			APIVersion: controlplanev1.GroupVersion.String(), Kind: "KubeadmControlPlaneTemplate",
			MatchResources: clusterv1.PatchSelectorMatch{ControlPlane: true},
		}
		class.Spec.Patches = append(class.Spec.Patches, clusterv1.ClusterClassPatch{Name: "count", Definitions: []clusterv1.PatchDefinition{{
			Selector: selector, JSONPatches: []clusterv1.JSONPatch{{
				Op: "add", Path: "/spec/template/spec/kubeadmConfigSpec/postKubeadmCommands",
				ValueFrom: &clusterv1.JSONPatchValue{Template: ptr.To(`["echo {{ .greeting }}"]`)},
			}},
		}}})
	})
	for _, v := range class.Status.Variables {
		if v.Name == "greeting" && !v.DefinitionsConflict {
			t.Errorf("the definitions do not conflict: %+v", v)
		}
	}
	wrong := NewCluster("wrong", class.Name).Variable("greeting", 3).Build()
	wrong.Namespace = w.Namespace
	if err := w.Client.Create(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), `variable "greeting" has conflicting definitions: set one value for each of "inline", "greet"`) {
		t.Errorf("a value without definitionFrom: %v", err)
	}
	cluster := NewCluster("c", class.Name).Variable("startupDuration", "100ms").Build()
	for from, value := range map[string]string{"inline": `3`, "greet": `"moin"`} {
		cluster.Spec.Topology.Variables = append(cluster.Spec.Topology.Variables, clusterv1.ClusterVariable{
			Name: "greeting", DefinitionFrom: from, Value: apiextensionsv1.JSON{Raw: []byte(value)},
		})
	}
	c := w.Subject(cluster)
	c.Eventually("each patch has its own value", Ready, c.greets("moin"), reconciled(""), func(p *Snapshot) error {
		if got := p.ControlPlanes.Items[0].Spec.KubeadmConfigSpec.PostKubeadmCommands; !slices.Equal(got, []string{"echo 3"}) {
			return fmt.Errorf("the inline patch has set %q", got)
		}
		return nil
	})
}

// TestAHangingExtensionDelaysNoOthers applies forty Clusters that wait for a server that hangs, four for each worker, and then one in
// another namespace, which the server is not called for: it is created while the first calls are still in progress.
func TestAHangingExtensionDelaysNoOthers(t *testing.T) {
	t.Parallel()
	s := NewStandalone(t, shared.Management(t).Tools.withVariable(t, "EXP_RUNTIME_SDK", "true"))
	testenv.Must(t, s.tools.install(t.Context(), s.kubeconfig()))
	w := s.Management().World(t)
	var ended atomic.Int32 // calls that timed out
	server := extensiontest.Serve(t, extensiontest.Options{}, func(out http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/discovery") {
			select {
			case <-r.Context().Done():
				ended.Add(1)
			case <-t.Context().Done():
			}
			return
		}
		handler := map[string]any{"name": "hangs", "timeoutSeconds": 30, "requestHook": map[string]any{"apiVersion": hooksAPI, "hook": "BeforeClusterCreate"}}
		if err := json.NewEncoder(out).Encode(map[string]any{"status": "Success", "handlers": []any{handler}}); err != nil {
			t.Error(err)
		}
	})
	testenv.Must(t, w.Client.Create(t.Context(), w.extensionConfig("windows", byURL(server))))
	w.discovered("windows", "True hangs.windows")
	others := w.Management.World(t)
	class := w.Class(w.Tools.OlderTemplate())
	others.Class(w.Tools.OlderTemplate())
	for n := range 40 {
		w.Applied(NewCluster(fmt.Sprintf("waits-%d", n), class).Build())
	}
	testenv.Eventually(t, "the server is called", func() error {
		if len(server.Calls()) == 0 {
			return errors.New("it is not")
		}
		return nil
	})
	c := others.Subject(NewCluster("other", class).Variable("startupDuration", "1ms").Build())
	c.Eventually("a Cluster that does not need the server is created", func(p *Snapshot) error {
		if p.Cluster.Spec.ControlPlaneRef == nil {
			return errors.New("it is not reconciled")
		}
		return nil
	})
	if n := ended.Load(); n > 0 {
		t.Errorf("a Cluster that does not need the server was created after %d calls had timed out: it waited for a worker", n)
	}
}
