package config

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flatcar/ignition/config/v2_3"
	"github.com/vincent-petithory/dataurl"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm/kubeadmtest"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// kubeadm of each version initializes a control plane from the files that we write, without a warning about them, and issues
// certificates with the CAs of the cluster, whatever their keys are.
func TestKubeadm(t *testing.T) {
	for _, program := range kubeadmtest.Programs(t) {
		run := func(algorithm pki.KeyAlgorithm, name string, spec bootstrapv1.KubeadmConfigSpec) {
			t.Run(strings.Join([]string{program.Version, string(algorithm), name}, " "), func(t *testing.T) { initializesWith(t, program, algorithm, spec) })
		}
		specs := kubeadmSpecs(t, program)
		for name, spec := range specs {
			run(pki.ECDSA, name, spec)
		}
		// The algorithm does not matter for other fields.
		for _, algorithm := range []pki.KeyAlgorithm{pki.ECDSAP384, pki.RSA2048, pki.RSA3072} {
			run(algorithm, "defaults", specs["defaults"])
		}
	}
}

func initializesWith(t *testing.T, program kubeadmtest.Program, algorithm pki.KeyAlgorithm, spec bootstrapv1.KubeadmConfigSpec) {
	t.Helper()
	m := program.NewMachine(t)
	path := writeData(t, m, "init", kubeadmWorld(t, program, algorithm, false, spec))
	ca := m.Read(t, "/etc/kubernetes/pki/ca.crt")
	if program.Minor() >= 26 {
		m.Run(t, "config", "validate", "--config", path)
	}
	phases := [][]string{{"certs", "all"}, {"kubeconfig", "all"}, {"control-plane", "all"}, {"etcd", "local"}}
	external := kubeadm.Defined(spec.ClusterConfiguration.Etcd.External)
	if external {
		phases = phases[:3]
	}
	for _, phase := range phases {
		m.Run(t, append([]string{"init", "phase"}, append(phase, "--config", path)...)...)
	}
	issued(t, m, issuedAlgorithm(program, algorithm), external)
	if now := m.Read(t, "/etc/kubernetes/pki/ca.crt"); now != ca {
		t.Error("kubeadm replaced the CA")
	}
	manifest := m.Read(t, "/etc/kubernetes/manifests/kube-apiserver.yaml")
	config := spec.ClusterConfiguration
	if environment := config.APIServer.ExtraEnvs; environment != nil && strings.Contains(manifest, "GOMAXPROCS") != (program.Minor() >= 31) {
		t.Errorf("environment variables of the API server require v1beta4:\n%s", manifest)
	}
	if days := config.CertificateValidityPeriodDays; days > 0 && program.Minor() >= 31 {
		chain, err := cert.ParseCertsPEM([]byte(m.Read(t, "/etc/kubernetes/pki/apiserver.crt")))
		testenv.Must(t, err)
		if until := time.Until(chain[0].NotAfter); until > time.Duration(days)*24*time.Hour {
			t.Errorf("the certificate is valid for %s, longer than %d days", until, days)
		}
	}
	for _, arg := range spec.ClusterConfiguration.APIServer.ExtraArgs {
		if !strings.Contains(manifest, "- --"+arg.Name+"="+*arg.Value+"\n") {
			t.Errorf("the API server does not have --%s=%s:\n%s", arg.Name, *arg.Value, manifest)
		}
	}
	// kubeadm v1.30 ignores it.
	timeout := spec.InitConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds
	if program.Minor() != 30 && timeout != nil && !strings.Contains(manifest, "failureThreshold: 126\n") {
		t.Errorf("the API server may not take 21 minutes to start, in periods of 10 s:\n%s", manifest)
	}
	// All other phases, with an API server that kubeadm simulates.
	m.Run(t, "init", "--dry-run", "--skip-phases", "preflight", "--config", path)
}

// issuedAlgorithm returns the algorithm of keys that kubeadm generates in a cluster whose CA has keys of an algorithm.
func issuedAlgorithm(program kubeadmtest.Program, ca pki.KeyAlgorithm) pki.KeyAlgorithm {
	if program.Minor() < 31 || ca == pki.ECDSAP384 && program.Minor() < 34 {
		return pki.RSA2048 // It has no setting, or does not have this value.
	}
	return ca
}

// issued checks the certificates that kubeadm issued.
func issued(t *testing.T, m *kubeadmtest.Machine, algorithm pki.KeyAlgorithm, externalEtcd bool) {
	t.Helper()
	const dir = "/etc/kubernetes/pki/"
	signed := map[string][]string{
		dir + "ca.crt":             {dir + "apiserver.crt", dir + "apiserver-kubelet-client.crt"},
		dir + "front-proxy-ca.crt": {dir + "front-proxy-client.crt"},
		dir + "etcd/ca.crt":        {dir + "etcd/server.crt", dir + "etcd/peer.crt", dir + "etcd/healthcheck-client.crt", dir + "apiserver-etcd-client.crt"},
	}
	if externalEtcd {
		delete(signed, dir+"etcd/ca.crt")
	}
	for ca, files := range signed {
		for _, file := range files {
			verified(t, file, []byte(m.Read(t, ca)), []byte(m.Read(t, file)), algorithm)
		}
	}
	for _, file := range []string{"admin.conf", "controller-manager.conf", "scheduler.conf"} {
		config, err := clientcmd.Load([]byte(m.Read(t, "/etc/kubernetes/"+file)))
		testenv.Must(t, err)
		verified(t, file, []byte(m.Read(t, dir+"ca.crt")), config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo].ClientCertificateData, algorithm)
	}
}

func verified(t *testing.T, file string, ca, certificate []byte, algorithm pki.KeyAlgorithm) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	chain, err := cert.ParseCertsPEM(certificate)
	testenv.Must(t, err)
	if _, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		t.Errorf("%s: %v", file, err)
	}
	if got := pki.AlgorithmOf(chain[0]); got != algorithm {
		t.Errorf("%s: the key is %s, want %s", file, got, algorithm)
	}
}

// kubeadm of each version reads the configuration of machines that join.
func TestKubeadmJoin(t *testing.T) {
	for _, program := range kubeadmtest.Programs(t) {
		for name, spec := range kubeadmSpecs(t, program) {
			for _, controlPlane := range []bool{true, false} {
				role := map[bool]string{true: "control plane", false: "worker"}[controlPlane]
				t.Run(strings.Join([]string{program.Version, name, role}, " "), func(t *testing.T) {
					if !controlPlane {
						spec.JoinConfiguration.ControlPlane = nil
					}
					m := program.NewMachine(t)
					path := writeData(t, m, "join", kubeadmWorld(t, program, pki.ECDSA, true, spec, controlPlane))
					if program.Minor() >= 26 {
						m.Run(t, "config", "validate", "--config", path)
						return
					}
					m.Run(t, "config", "migrate", "--old-config", path, "--new-config", "/tmp/new.yaml")
				})
			}
		}
	}
}

// kubeadmWorld is a Machine "m" of a version and its config, in a cluster with CAs of an algorithm.
func kubeadmWorld(t *testing.T, program kubeadmtest.Program, algorithm pki.KeyAlgorithm, joins bool, spec bootstrapv1.KubeadmConfigSpec, controlPlane ...bool) *world {
	t.Helper()
	cluster := newCluster()
	cluster.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"192.168.0.0/16"}
	if joins {
		initialized(cluster)
	}
	machine := newMachine("m", len(controlPlane) == 0 || controlPlane[0])
	machine.Spec.Version = program.Version
	objects := []client.Object{cluster, machine, newConfig("m", *spec.DeepCopy())}
	external := kubeadm.Defined(spec.ClusterConfiguration.Etcd.External)
	for _, purpose := range pki.OfControlPlane(external) {
		objects = append(objects, realSecret(t, algorithm, purpose))
	}
	w := newWorld(t, objects...)
	w.c.ignition = true
	return w
}

// realSecret returns a Secret with a CA, or what else the purpose requires, as users provide them.
func realSecret(t *testing.T, algorithm pki.KeyAlgorithm, purpose pki.Purpose) *corev1.Secret {
	t.Helper()
	key := types.NamespacedName{Namespace: "default", Name: "test"}
	if purpose != pki.APIServerEtcdClient {
		pair, err := pki.NewKeys(algorithm).Generate(purpose, time.Now())
		testenv.Must(t, err)
		return pki.NewSecret(key, purpose, pair.Data(), nil)
	}
	ca, err := pki.NewCA(algorithm, time.Now())
	testenv.Must(t, err)
	pair, err := ca.Issue(pki.Request{CommonName: "kube-apiserver-etcd-client"}, time.Now())
	testenv.Must(t, err)
	return pki.NewSecret(key, purpose, pair.Data(), nil)
}

// writeData generates the bootstrap data of Machine m, writes its files, and returns the path of kubeadm's configuration.
func writeData(t *testing.T, m *kubeadmtest.Machine, command string, w *world) string {
	t.Helper()
	w.mustReconcile(t, "m")
	if w.config(t, "m").Spec.Format == bootstrapv1.Ignition {
		document, report, err := v2_3.Parse(get(t, w, "m", &corev1.Secret{}).Data["value"])
		if err != nil {
			t.Fatalf("%v: %v", err, report)
		}
		for _, f := range document.Storage.Files {
			content, err := dataurl.DecodeString(f.Contents.Source)
			testenv.Must(t, err)
			m.Write(t, f.Path, string(content.Data))
		}
		return "/etc/kubeadm.yml"
	}
	for _, f := range w.document(t, "m").Files {
		m.Write(t, f.Path, f.Content)
	}
	return map[string]string{"init": "/run/kubeadm/kubeadm.yaml", "join": joinPath}[command]
}

// kubeadmSpecs returns specs by name, for a version.
func kubeadmSpecs(t *testing.T, program kubeadmtest.Program) map[string]bootstrapv1.KubeadmConfigSpec {
	t.Helper()
	external := everyField(program)
	external.ClusterConfiguration.Etcd = bootstrapv1.Etcd{External: bootstrapv1.ExternalEtcd{Endpoints: []string{"https://10.0.0.9:2379"},
		CAFile: "/etc/kubernetes/pki/etcd/ca.crt", CertFile: "/etc/kubernetes/pki/apiserver-etcd-client.crt", KeyFile: "/etc/kubernetes/pki/apiserver-etcd-client.key"}}
	external.JoinConfiguration.Discovery = bootstrapv1.Discovery{TLSBootstrapToken: "abcdef.0123456789abcdef", File: bootstrapv1.FileDiscovery{KubeConfigPath: "/etc/kubernetes/discovery.conf"}}
	external.Files = append(external.Files, bootstrapv1.File{Path: "/etc/kubernetes/discovery.conf", Content: "{}"})
	every := everyField(program)
	ignition := everyField(program)
	ignition.Format = bootstrapv1.Ignition
	published := publishedSpec(t)
	return map[string]bootstrapv1.KubeadmConfigSpec{
		"defaults":       clusterSpec(),
		"every field":    every,
		"external etcd":  external,
		"ignition":       ignition,
		"quick start":    published,
		"with variables": withVariables(published),
	}
}

// everyField returns a spec in which all fields have values that kubeadm does not have as defaults.
func everyField(program kubeadmtest.Program) bootstrapv1.KubeadmConfigSpec {
	component := func(name string) bootstrapv1.ControlPlaneComponent {
		return bootstrapv1.ControlPlaneComponent{
			ExtraArgs:    arguments("profiling=false", "v=3"),
			ExtraEnvs:    &[]bootstrapv1.EnvVar{{EnvVar: corev1.EnvVar{Name: "GOMAXPROCS", Value: "2"}}},
			ExtraVolumes: []bootstrapv1.HostPathMount{{Name: name, HostPath: "/var/log/" + name, MountPath: "/var/log/" + name, ReadOnly: ptr.To(true), PathType: corev1.HostPathDirectoryOrCreate}},
		}
	}
	registration := bootstrapv1.NodeRegistrationOptions{
		Name: "node-1", CRISocket: "unix:///run/containerd/other.sock", KubeletExtraArgs: arguments("node-labels=a=b", "v=2"),
		Taints:                &[]corev1.Taint{{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoSchedule}, {Key: "new", Effect: corev1.TaintEffectNoExecute}},
		IgnorePreflightErrors: []string{"NumCPU", "Mem"}, ImagePullPolicy: "Always", ImagePullSerial: ptr.To(false),
	}
	if program.Minor() < 24 {
		registration.CRISocket = "/run/containerd/other.sock"
	}
	return bootstrapv1.KubeadmConfigSpec{
		ClusterConfiguration: bootstrapv1.ClusterConfiguration{
			ControlPlaneEndpoint: "api.example.com:443", CertificatesDir: "/etc/kubernetes/pki", ImageRepository: "registry.example.com/k8s",
			FeatureGates: gate(program), CertificateValidityPeriodDays: 90, CACertificateValidityPeriodDays: 1000,
			DNS: bootstrapv1.DNS{ImageMeta: bootstrapv1.ImageMeta{ImageRepository: "registry.example.com/coredns", ImageTag: "v1.12.0"}},
			Etcd: bootstrapv1.Etcd{Local: bootstrapv1.LocalEtcd{
				ImageMeta: bootstrapv1.ImageMeta{ImageRepository: "registry.example.com/etcd", ImageTag: "3.6.8-0"}, DataDir: "/var/lib/other",
				ExtraEnvs:      &[]bootstrapv1.EnvVar{{EnvVar: corev1.EnvVar{Name: "GOMAXPROCS", Value: "2"}}},
				ExtraArgs:      arguments("quota-backend-bytes=8589934592", "heartbeat-interval=200"),
				ServerCertSANs: []string{"etcd.example.com", "10.0.0.7"}, PeerCertSANs: []string{"peer.example.com"},
			}},
			APIServer:         bootstrapv1.APIServer{ControlPlaneComponent: component("apiserver"), CertSANs: []string{"api.example.com", "10.0.0.8"}},
			ControllerManager: component("controller-manager"),
			Scheduler:         component("scheduler"),
		},
		InitConfiguration: bootstrapv1.InitConfiguration{
			NodeRegistration: registration, LocalAPIEndpoint: bootstrapv1.APIEndpoint{AdvertiseAddress: "10.0.0.2", BindPort: 443},
			Timeouts: bootstrapv1.Timeouts{
				ControlPlaneComponentHealthCheckSeconds: ptr.To[int32](1260), KubeletHealthCheckSeconds: ptr.To[int32](301),
				KubernetesAPICallSeconds: ptr.To[int32](61), EtcdAPICallSeconds: ptr.To[int32](121), DiscoverySeconds: ptr.To[int32](302),
			},
			SkipPhases: []string{"addon/kube-proxy"}, Patches: bootstrapv1.Patches{Directory: "/etc/kubernetes/patches"},
			BootstrapTokens: []bootstrapv1.BootstrapToken{{
				Token: bootstrapv1.BootstrapTokenString{ID: "abcdef", Secret: "0123456789abcdef"}, Description: "mine", TTLSeconds: ptr.To[int32](3600),
				Usages: []string{"signing", "authentication"}, Groups: []string{"system:bootstrappers:mine"},
			}},
		},
		JoinConfiguration: bootstrapv1.JoinConfiguration{
			NodeRegistration: registration, CACertPath: "/etc/kubernetes/pki/ca.crt", SkipPhases: []string{"preflight"}, Patches: bootstrapv1.Patches{Directory: "/etc/kubernetes/patches"},
			Discovery: bootstrapv1.Discovery{TLSBootstrapToken: "abcdef.0123456789abcdef",
				BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{Token: "abcdef.0123456789abcdef", APIServerEndpoint: "api.example.com:443", CACertHashes: []string{"sha256:" + strings.Repeat("ab", 32)}}},
			Timeouts:     bootstrapv1.Timeouts{ControlPlaneComponentHealthCheckSeconds: ptr.To[int32](1260), TLSBootstrapSeconds: ptr.To[int32](420)},
			ControlPlane: &bootstrapv1.JoinControlPlane{LocalAPIEndpoint: bootstrapv1.APIEndpoint{AdvertiseAddress: "10.0.0.3", BindPort: 443}},
		},
		Files: []bootstrapv1.File{{Path: "/etc/kubernetes/patches/kube-apiserver+merge.yaml", Content: "metadata: {annotations: {patched: by-user}}\n"}},
	}
}

// arguments returns flags in the form name=value.
func arguments(flags ...string) []bootstrapv1.Arg {
	var out []bootstrapv1.Arg
	for _, flag := range flags {
		name, value, _ := strings.Cut(flag, "=")
		out = append(out, bootstrapv1.Arg{Name: name, Value: &value})
	}
	return out
}

// gate returns a feature gate of kubeadm that a version has, and that it does not warn about.
func gate(program kubeadmtest.Program) map[string]bool {
	if program.Minor() < 22 {
		return map[string]bool{"PublicKeysECDSA": false}
	}
	return map[string]bool{"RootlessControlPlane": false}
}

// publishedSpec returns the spec of the control plane of Cluster API v1.7's quick start.
func publishedSpec(t *testing.T) bootstrapv1.KubeadmConfigSpec {
	t.Helper()
	path := filepath.Join("..", "..", "..", "..", "..", "shared", "facts", "data", "templates-v1.7", "docker", "clusterclass-quick-start.yaml")
	content, err := os.ReadFile(path)
	testenv.Must(t, err)
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		older, template := &controlplanev1beta1.KubeadmControlPlaneTemplate{}, &controlplanev1.KubeadmControlPlaneTemplate{}
		testenv.Must(t, yaml.Unmarshal([]byte(document), older))
		if older.Kind == "KubeadmControlPlaneTemplate" {
			testenv.Must(t, conversion.Shared().Convert(t.Context(), older, template))
			return template.Spec.Template.Spec.KubeadmConfigSpec
		}
	}
	t.Fatalf("%s has no KubeadmControlPlaneTemplate", path)
	return bootstrapv1.KubeadmConfigSpec{}
}

// withVariables returns the spec as the patches of the quick start's ClusterClass change it when all variables are set.
func withVariables(spec bootstrapv1.KubeadmConfigSpec) bootstrapv1.KubeadmConfigSpec {
	out := spec.DeepCopy()
	cluster := &out.ClusterConfiguration
	cluster.ImageRepository = "registry.example.com/k8s"
	cluster.Etcd = bootstrapv1.Etcd{Local: bootstrapv1.LocalEtcd{ImageMeta: bootstrapv1.ImageMeta{ImageTag: "3.5.3-0"}}}
	cluster.DNS = bootstrapv1.DNS{ImageMeta: bootstrapv1.ImageMeta{ImageTag: "v1.8.5"}}
	const file = "/etc/kubernetes/kube-apiserver-admission-pss.yaml"
	cluster.APIServer.ExtraArgs = arguments("admission-control-config-file=" + file)
	cluster.APIServer.ExtraVolumes = []bootstrapv1.HostPathMount{{Name: "admission-pss", HostPath: file, MountPath: file, ReadOnly: ptr.To(true), PathType: corev1.HostPathFile}}
	out.Files = append(slices.Clone(out.Files), bootstrapv1.File{Path: file, Content: "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n"})
	return *out
}
