package journey

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	hosts "sigs.k8s.io/cluster-api/examples/provider-hosts"
	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	"sigs.k8s.io/cluster-api/examples/provider-hosts/internal/sshtest"
	"sigs.k8s.io/cluster-api/sdk/manager"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/process"
)

var server testenv.Server

// TestMain runs the tests, or stands for a program of a Host: see simulated_test.go.
func TestMain(m *testing.M) {
	if program := os.Getenv(programVariable); program != "" {
		if err := simulate(program, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	server.Main(m)
}

// world is a management cluster with the providers.
type world struct {
	client.Client
	t         *testing.T
	env       *testenv.Env
	namespace string
	dir       string
	// output is what clusterctl printed last.
	output    string
	variables []string

	// Those of one Cluster.
	workload   client.Client
	kubeconfig string
	servers    map[string]*sshtest.Server
}

func newWorld(t *testing.T) *world {
	t.Helper()
	env := server.Start(t)
	w := &world{Client: env.NewClient(t, testenv.Scheme(t, clusterv1beta1.AddToScheme, hostsv1.AddToScheme)), t: t, env: env, namespace: env.Namespace(t), dir: t.TempDir()}
	w.install()
	return w
}

// cluster returns the world with an empty namespace, and an API server that waits to become the workload cluster's.
func (w *world) cluster(t *testing.T) *world {
	t.Helper()
	of := *w
	of.t, of.namespace, of.variables, of.servers = t, w.env.Namespace(t), slices.Clone(w.variables), map[string]*sshtest.Server{}
	of.controlPlane(t.TempDir())
	return &of
}

// labels gives the definitions the label of one contract alone.
func (w *world) labels(t *testing.T, contract string) {
	t.Helper()
	other := map[string]string{"v1beta1": "v1beta2", "v1beta2": "v1beta1"}[contract]
	for _, plural := range []string{"hostclusters", "hostclustertemplates", "hostmachines", "hostmachinetemplates"} {
		version := "v1alpha1"
		if contract == "v1beta2" && strings.HasPrefix(plural, "hostcluster") {
			version = "v1alpha2"
		}
		definition := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: plural + "." + hostsv1.GroupVersion.Group}}
		definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		testenv.Must(t, w.Patch(t.Context(), definition, client.RawPatch(types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"labels":{"cluster.x-k8s.io/%s":%q,"cluster.x-k8s.io/%s":null}}}`, contract, version, other))))
	}
}

func (w *world) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: w.namespace, Name: name}
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name}
}

// run runs a program in a folder of the repository.
func (w *world) run(folder, program string, args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), program, args...)
	cmd.Dir = filepath.Join(w.env.Root, folder)
	cmd.Env = append(append(os.Environ(), "KUBECONFIG="+w.env.Kubeconfig, "CLUSTERCTL_DISABLE_VERSIONCHECK=true"), w.variables...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("%s %s: %v\n%s%s", program, strings.Join(args, " "), err, out, &stderr)
	}
	return string(out)
}

func (w *world) clusterctl(args ...string) {
	w.t.Helper()
	w.output = w.run("", filepath.Join(w.dir, "clusterctl"), append(args, "--config", filepath.Join(w.dir, "repository", "clusterctl.yaml"))...)
}

// controlPlane starts the API server of the workload cluster, in place of those that kubeadm init and a load balancer would be. Its CA is
// the one that the user brings for the Cluster.
func (w *world) controlPlane(dir string) {
	w.t.Helper()
	binary := os.Getenv(testenv.BinaryVariable)
	if binary == "" {
		binary = filepath.Join(w.env.Root, "bin", "capi")
	}
	w.kubeconfig = filepath.Join(dir, "workload.kubeconfig")
	p, err := process.Start(binary, filepath.Join(dir, "workload.log"), nil, "serve", "--components=false", "--data-dir", dir, "--secure-port", "0",
		"--kubeconfig", w.kubeconfig, "--unsafe-no-fsync")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = p.Kill() })
	w.eventually("the workload cluster's API server to answer", func() error {
		var err error
		if w.workload, err = connect(w.kubeconfig); err != nil {
			return err
		}
		return w.workload.Get(w.t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, &corev1.Namespace{})
	})
	certificate, err1 := os.ReadFile(filepath.Join(dir, "pki", "ca.crt"))
	key, err2 := os.ReadFile(filepath.Join(dir, "pki", "ca.key"))
	config, err3 := clientcmd.LoadFromFile(w.kubeconfig)
	testenv.Must(w.t, err1, err2, err3)
	w.create(pki.NewSecret(types.NamespacedName{Namespace: w.namespace, Name: "demo"}, pki.ClusterCA, pki.Pair{Certificate: certificate, Key: key}.Data(), nil))
	host, port, err := net.SplitHostPort(strings.TrimPrefix(config.Clusters[config.Contexts[config.CurrentContext].Cluster].Server, "https://"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.variables = append(w.variables, "CONTROL_PLANE_ENDPOINT_HOST="+host, "CONTROL_PLANE_ENDPOINT_PORT="+port)
}

// install builds and installs the providers, and starts the manager of this one.
func (w *world) install() {
	w.t.Helper()
	w.run("", "go", "build", "-o", filepath.Join(w.dir, "clusterctl"), "./cmd/clusterctl")
	repository := filepath.Join(w.dir, "repository")
	w.run("release", "go", "run", "./cmd/release", "--root", "..", "--version", "v2.0.0", "--out", repository)
	w.run("examples/provider-hosts", "./release.sh", repository, "v0.1.0")
	w.conforms(filepath.Join(repository, "infrastructure-hosts", "v0.1.0"))
	w.edit(filepath.Join(repository, "clusterctl.yaml"), "providers:\n",
		"providers:\n- name: hosts\n  type: InfrastructureProvider\n  url: "+repository+"/infrastructure-hosts/latest/infrastructure-components.yaml\n")
	webhooks, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	w.clients(filepath.Join(repository, "infrastructure-hosts", "v0.1.0", "infrastructure-components.yaml"), webhooks.Addr().(*net.TCPAddr).Port)
	w.clusterctl("init", "--core", "cluster-api", "--bootstrap", "kubeadm", "--control-plane", "kubeadm", "--infrastructure", "hosts")
	w.manage(webhooks)
	w.eventually("the webhooks to answer", func() error {
		host := &hostsv1.Host{ObjectMeta: w.meta("dry-run"), Spec: hostsv1.HostSpec{Address: "10.0.0.1", SSHKeySecret: "key", HostKeys: []string{sshtest.Start(w.t).Key}}}
		return w.Create(w.t.Context(), host, client.DryRunAll)
	})
}

// conforms checks the release as one of each contract.
func (w *world) conforms(folder string) {
	w.t.Helper()
	metadata := filepath.Join(folder, "metadata.yaml")
	w.edit(metadata, "contract: v1beta2", "contract: v1beta1")
	w.clusterctl("check", "provider", folder)
	w.edit(metadata, "contract: v1beta1", "contract: v1beta2")
	w.clusterctl("check", "provider", folder)
}

// clients makes the components those of a manager that runs as a process outside the cluster, as the book describes it.
func (w *world) clients(components string, port int) {
	w.t.Helper()
	w.edit(components, "  ports:\n  - port: 443\n    targetPort: webhook-server\n  selector:\n    cluster.x-k8s.io/provider: infrastructure-hosts\n",
		"  type: ExternalName\n  externalName: 127.0.0.1\n")
	for _, indent := range []string{"\n      ", "\n          "} { // of webhooks, and of conversions
		w.edit(components, indent+"name: hosts-webhook-service\n", indent+"name: hosts-webhook-service"+indent+"port: "+strconv.Itoa(port)+"\n")
	}
}

func (w *world) edit(file, from, to string) {
	w.t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	if !strings.Contains(string(content), from) {
		w.t.Fatalf("%s has no %q", file, from)
	}
	testenv.Must(w.t, os.WriteFile(file, []byte(strings.ReplaceAll(string(content), from, to)), 0o600))
}

// manage runs the manager with the permissions of its ServiceAccount, until the test ends.
func (w *world) manage(webhooks net.Listener) {
	config := rest.CopyConfig(w.env.Config)
	config.Impersonate.UserName = "system:serviceaccount:hosts-system:hosts-manager"
	config.Impersonate.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:hosts-system", "system:authenticated"}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- manager.Run(ctx, hosts.NewComponent(), nil, manager.Host{
			Config: config, Namespace: "hosts-system",
			Listen: func(purpose string) (net.Listener, error) {
				if purpose == manager.ListenWebhook {
					return webhooks, nil
				}
				return nil, nil
			},
		})
	}()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("the manager ended with %v", err)
		}
	})
}

// host adds a server to the inventory. Its name begins with its zone.
func (w *world) host(name string, roles ...hostsv1.Role) string {
	w.t.Helper()
	s := sshtest.Start(w.t)
	w.servers[name] = s
	simulation(w.t, s, name, w.kubeconfig)
	w.create(&corev1.Secret{ObjectMeta: w.meta(name + "-ssh"), Data: map[string][]byte{corev1.SSHAuthPrivateKey: s.PrivateKey}})
	host := &hostsv1.Host{ObjectMeta: w.meta(name), Spec: s.Spec()}
	zone, _, _ := strings.Cut(name, "-")
	host.Labels = map[string]string{hostsv1.ZoneLabel: zone}
	host.Spec.SSHKeySecret, host.Spec.Roles = name+"-ssh", roles
	w.create(host)
	return name
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	testenv.Must(w.t, w.Create(w.t.Context(), obj))
}

// apply creates the objects of a file.
func (w *world) apply(content string) {
	w.t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(content), 4096)
	for {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(obj); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			w.t.Fatal(err)
		}
		w.create(obj)
	}
}

func connect(kubeconfig string) (client.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{})
}
