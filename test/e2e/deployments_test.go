package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/journey"
)

const (
	// testRegistry is part of the names of the images, so that they do not replace images of a release.
	testRegistry = "cluster-api.invalid/e2e"
	// testVersion is a version of a release series that release/files/metadata.yaml has.
	testVersion = "v2.0.0"
	// memoryLimit is that of each manager. It must have room for the pages of the program, too, which count in the container that reads them
	// first: 44 MB of the core manager, beside a heap of 18 MB. With 64 MiB, it reads the same pages again and again.
	memoryLimit = "96Mi"
)

// deployed is a manager as it is installed.
type deployed struct{ image, namespace, prefix, lease string }

// deployments are the managers that the test installs.
func deployments() []deployed {
	return []deployed{
		{"cluster-api-controller", "capi-system", "capi-", "controller-leader-election-capi"},
		{"kubeadm-bootstrap-controller", "capi-kubeadm-bootstrap-system", "capi-kubeadm-bootstrap-", "kubeadm-bootstrap-manager-leader-election-capi"},
		{"kubeadm-control-plane-controller", "capi-kubeadm-control-plane-system", "capi-kubeadm-control-plane-", "kubeadm-control-plane-manager-leader-election-capi"},
		{"capd-manager", "capd-system", "capd-", "controller-leader-election-capd"},
	}
}

// TestDeployments installs the managers from their images in a cluster of 1+1, as users do, with two replicas, restricted Pods and
// a memory limit. Their leaders are killed, and their webhook certificates rotated, while webhooks are called all the time. Then
// they create a cluster of their own.
func TestDeployments(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	w := shared.World(t)
	w.Patient()
	m := newManagement(t, w, "deployments", deployments())
	c := m.subject
	stage(t, "clusterctl init", func() {
		m.clusterctl("init", "--infrastructure", "docker", "--wait-providers", "--wait-provider-timeout", "180")
	})
	stage(t, "two restricted replicas", m.replicate)
	m.answered()
	webhooks := m.probe()
	m.failover()
	m.settle()
	webhooks.end(10 * time.Second)
	webhooks = m.probe()
	stage(t, "rotated the webhook certificates", m.rotate)
	webhooks.end(10 * time.Second)
	m.answered()
	stage(t, "a cluster of 1+0 from the Deployments", m.cluster)
	m.memory()
	stage(t, "deleted", func() { gone(t, c) })
}

// preloading returns this project's template, with the images of managers loaded into its machines.
func preloading(t *testing.T, tools *journey.Tools, managers []deployed) journey.Template {
	t.Helper()
	released := filepath.Join(tools.Root, "providers", "infrastructure-docker", "config", "templates")
	content, err := os.ReadFile(filepath.Join(released, "clusterclass-quick-start.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var images []any
	for _, d := range managers {
		images = append(images, testRegistry+"/"+d.image+":"+testVersion)
	}
	var out []byte
	changed := 0
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := utilyaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		if o.GetKind() == "DockerMachineTemplate" {
			changed++
			if err := unstructured.SetNestedSlice(o.Object, images, "spec", "template", "spec", "preLoadImages"); err != nil {
				t.Fatal(err)
			}
		}
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		out = append(append(out, text...), "---\n"...)
	}
	if changed == 0 {
		t.Fatal("the ClusterClass has no DockerMachineTemplate")
	}
	path := filepath.Join(t.TempDir(), "clusterclass.yaml")
	if err := os.WriteFile(path, out, 0o600); err != nil {
		t.Fatal(err)
	}
	return journey.Template{Class: path, Cluster: filepath.Join(released, "cluster-template-development.yaml")}
}

// management is a workload cluster in which managers run as Deployments.
type management struct {
	t                  *testing.T
	managers           []deployed
	subject            *journey.Subject
	config, kubeconfig string
	client             client.Client
	kubernetes         kubernetes.Interface
}

// newManagement creates a cluster of 1+1 with the images of these managers, and a release that installs them.
func newManagement(t *testing.T, w *journey.World, name string, managers []deployed) *management {
	t.Helper()
	var repository string
	stage(t, "built images and a release", func() { repository = built.release(t, w.Tools, filepath.Dir(w.Kubeconfig)) })
	template := preloading(t, w.Tools, managers)
	w.Class(template)
	cluster := w.Generated(template, name, newer, 1, 1)
	cluster.Spec.Topology.Workers.MachinePools = nil
	socket := clusterv1.ClusterVariable{Name: "dockerSocket"}
	socket.Value.Raw = []byte("true")
	cluster.Spec.Topology.Variables = append(cluster.Spec.Topology.Variables, socket)
	var c *journey.Subject
	stage(t, "1 control plane machine and 1 worker", func() {
		c = subject(t, w, cluster)
		network(t, c)
		c.Eventually("the Cluster becomes ready", journey.Ready, journey.ControlPlanes(1), journey.Workers(1), c.WorkloadMatches)
	})
	m := &management{
		t: t, managers: managers, subject: c, config: filepath.Join(repository, "clusterctl.yaml"), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"),
	}
	m.connect()
	return m
}

func (m *management) connect() {
	m.t.Helper()
	t, c := m.t, m.subject
	r := c.Tools.Clusterctl(t.Context(), "", "get", "kubeconfig", c.Name, "--namespace", c.Namespace, "--kubeconfig", c.Kubeconfig)
	if r.Failed {
		t.Fatal(r)
	}
	if err := os.WriteFile(m.kubeconfig, []byte(r.Out), 0o600); err != nil {
		t.Fatal(err)
	}
	config := c.Workload().Config()
	config.QPS, config.Timeout = -1, 30*time.Second
	var err error
	if m.kubernetes, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	scheme := c.Client.Scheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if m.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
}

func (m *management) clusterctl(args ...string) string {
	m.t.Helper()
	r := m.subject.Tools.Clusterctl(m.t.Context(), "", append(args, "--config", m.config, "--kubeconfig", m.kubeconfig)...)
	if r.Failed {
		m.t.Fatalf("%s\n%s", r, m.kubectl("get", "pods", "--all-namespaces"))
	}
	return r.Out
}

func (m *management) kubectl(args ...string) string {
	m.t.Helper()
	r := m.subject.Tools.Kubectl(m.t.Context(), "", append([]string{"--kubeconfig", m.kubeconfig}, args...)...)
	if r.Failed {
		m.t.Fatal(r)
	}
	return r.Out
}

// replicate admits only restricted Pods, except that of the Docker provider, and scales the Deployments to 2.
func (m *management) replicate() {
	m.t.Helper()
	for _, d := range m.managers {
		if d.image != "capd-manager" {
			m.kubectl("label", "namespace", d.namespace, "pod-security.kubernetes.io/enforce=restricted")
		}
		// A new Pod for the first replica as well: those that exist are not checked.
		m.kubectl("--namespace", d.namespace, "rollout", "restart", "deployment/"+d.prefix+"controller-manager")
		m.kubectl("--namespace", d.namespace, "scale", "deployment/"+d.prefix+"controller-manager", "--replicas", "2")
	}
	m.settle()
}

// settle waits until all Deployments have two ready replicas.
func (m *management) settle() {
	m.t.Helper()
	for _, d := range m.managers {
		m.kubectl("--namespace", d.namespace, "rollout", "status", "deployment/"+d.prefix+"controller-manager", "--timeout", "180s")
		var deployment appsv1.Deployment
		key := client.ObjectKey{Namespace: d.namespace, Name: d.prefix + "controller-manager"}
		if err := m.client.Get(m.t.Context(), key, &deployment); err != nil {
			m.t.Fatal(err)
		}
		limit := deployment.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().String()
		if deployment.Status.AvailableReplicas != 2 || limit != memoryLimit {
			m.t.Errorf("%s has %d available replicas with a memory limit of %s, want 2 with %s", d.image, deployment.Status.AvailableReplicas, limit, memoryLimit)
		}
	}
}

// pods returns the Pods of a manager that are not being deleted.
func (m *management) pods(d deployed) []corev1.Pod {
	m.t.Helper()
	var list corev1.PodList
	if err := m.client.List(m.t.Context(), &list, client.InNamespace(d.namespace), client.MatchingLabels{"control-plane": "controller-manager"}); err != nil {
		m.t.Fatal(err)
	}
	var out []corev1.Pod
	for _, p := range list.Items {
		if p.DeletionTimestamp.IsZero() {
			out = append(out, p)
		}
	}
	return out
}

// answered calls a webhook of every Pod.
func (m *management) answered() {
	m.t.Helper()
	const review = `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "1", "operation": "DELETE",
		"object": null, "oldObject": {}}}`
	for _, d := range m.managers {
		pods := m.pods(d)
		if len(pods) != 2 {
			m.t.Errorf("%s has %d Pods, want 2", d.image, len(pods))
		}
		path := m.webhookPath(d)
		for _, p := range pods {
			raw, err := m.kubernetes.CoreV1().RESTClient().Post().Namespace(d.namespace).Resource("pods").SubResource("proxy").
				Name("https:"+p.Name+":9443").Suffix(path).SetHeader("Content-Type", "application/json").Body([]byte(review)).DoRaw(m.t.Context())
			var answer struct{ Response struct{ UID string } }
			if err == nil {
				err = json.Unmarshal(raw, &answer)
			}
			if err != nil || answer.Response.UID != "1" {
				m.t.Errorf("Pod %s does not respond at %s: %v %s", p.Name, path, err, raw)
			}
		}
	}
}

// webhookPath returns the path of a validating webhook of a manager.
func (m *management) webhookPath(d deployed) string {
	m.t.Helper()
	configuration, err := m.kubernetes.AdmissionregistrationV1().ValidatingWebhookConfigurations().
		Get(m.t.Context(), d.prefix+"validating-webhook-configuration", metav1.GetOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	return *configuration.Webhooks[0].ClientConfig.Service.Path
}

// probe calls the webhooks of the core manager and of the Docker provider, by dry runs.
func (m *management) probe() *probe {
	m.t.Helper()
	return start(m.t, "webhooks", func(ctx context.Context) error {
		cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "probe"}}
		if err := m.client.Create(ctx, cluster, client.DryRunAll); err != nil {
			return err
		}
		machine := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
		machine.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1beta1")
		machine.SetKind("DockerCluster")
		machine.SetNamespace("default")
		machine.SetName("probe")
		return m.client.Create(ctx, machine, client.DryRunAll)
	})
}
