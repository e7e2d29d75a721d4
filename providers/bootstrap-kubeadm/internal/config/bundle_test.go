package config

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm/kubeadmtest"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// bundleSecrets makes all CAs and ServiceAccount keys of a world have a second certificate or public key.
func bundleSecrets(t *testing.T, w *world, algorithm pki.KeyAlgorithm) {
	t.Helper()
	for _, purpose := range pki.OfControlPlane(false) {
		secret := get(t, w, pki.SecretName("test", purpose), &corev1.Secret{})
		other, err := pki.NewKeys(algorithm).Generate(purpose, time.Now())
		testenv.Must(t, err)
		secret.Data[pki.CertificateKey] = append(bytes.Clone(secret.Data[pki.CertificateKey]), other.Certificate...)
		testenv.Must(t, w.Update(t.Context(), secret))
	}
}

// kubeadm of each version initializes a control plane while CAs are rotated: the first certificate signs, kube-controller-manager gets it
// alone, and admin.conf of a Machine that joins is kept.
func TestKubeadmWhileCAsAreRotated(t *testing.T) {
	for _, program := range kubeadmtest.Programs(t) {
		if program.Minor() < 22 {
			continue // It has no patches in its configuration.
		}
		for _, format := range []bootstrapv1.Format{bootstrapv1.CloudConfig, bootstrapv1.Ignition} {
			t.Run(program.Version+" "+string(format), func(t *testing.T) {
				spec := clusterSpec()
				spec.Format = format
				w := kubeadmWorld(t, program, pki.RSA2048, true, spec)
				bundleSecrets(t, w, pki.RSA2048)
				m := program.NewMachine(t)
				writeData(t, m, "join", w)
				admin := m.Read(t, adminPath)
				secrets := map[pki.Purpose]*corev1.Secret{}
				for _, purpose := range pki.OfControlPlane(false) {
					secrets[purpose] = get(t, w, pki.SecretName("test", purpose), &corev1.Secret{})
					secrets[purpose].ResourceVersion = ""
				}

				w = kubeadmWorld(t, program, pki.RSA2048, false, spec)
				for _, purpose := range pki.OfControlPlane(false) {
					testenv.Must(t, w.Update(t.Context(), secrets[purpose]))
				}
				m = program.NewMachine(t)
				path := writeData(t, m, "init", w)
				m.Write(t, adminPath, admin)
				for _, phase := range [][]string{{"certs", "all"}, {"kubeconfig", "all"}, {"control-plane", "all"}, {"etcd", "local"}} {
					m.Run(t, append([]string{"init", "phase"}, append(phase, "--config", path)...)...)
				}
				issued(t, m, issuedAlgorithm(program, pki.RSA2048), false)
				flags := 0
				last := ""
				for line := range strings.Lines(m.Read(t, "/etc/kubernetes/manifests/kube-controller-manager.yaml")) {
					if _, value, ok := strings.Cut(line, "--cluster-signing-cert-file="); ok {
						flags, last = flags+1, strings.TrimSpace(value)
					}
				}
				if last != signingCAPath || flags != 2 {
					t.Errorf("kube-controller-manager signs with %q, the last of %d flags", last, flags)
				}
				if n := strings.Count(m.Read(t, signingCAPath), "BEGIN CERTIFICATE"); n != 1 {
					t.Errorf("it signs with %d certificates", n)
				}
				if m.Read(t, adminPath) != admin {
					t.Error("kubeadm has replaced admin.conf")
				}
			})
		}
	}
}

func TestFilesWhileCAsAreRotated(t *testing.T) {
	for _, tt := range []struct {
		reason       string
		bundle       bool
		controlPlane bool
		directory    string
		want         []string
	}{
		{reason: "one certificate", controlPlane: true},
		{reason: "a worker", bundle: true},
		{reason: "a control plane", bundle: true, controlPlane: true, want: []string{signingCAPath, "/etc/kubernetes/patches/" + signingPatchFile, adminPath}},
		{reason: "with patches of the user", bundle: true, controlPlane: true, directory: "/patches", want: []string{signingCAPath, "/patches/" + signingPatchFile, adminPath}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			spec := clusterSpec()
			spec.JoinConfiguration.Patches.Directory = tt.directory
			objects := []client.Object{initialized(newCluster()), newMachine("m", tt.controlPlane), newConfig("m", spec)}
			for _, purpose := range pki.OfControlPlane(false) {
				objects = append(objects, realSecret(t, pki.ECDSA, purpose))
			}
			w := newWorld(t, objects...)
			if tt.bundle {
				bundleSecrets(t, w, pki.ECDSA)
			}
			before := w.config(t, "m").Spec
			w.mustReconcile(t, "m")
			if diff := cmp.Diff(before, w.config(t, "m").Spec); diff != "" {
				t.Errorf("the spec must not change, -before +after:\n%s", diff)
			}
			document := w.document(t, "m")
			var got []string
			for _, file := range document.Files {
				if path := file.Path; path == signingCAPath || path == adminPath || strings.HasSuffix(path, signingPatchFile) {
					got = append(got, path)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("additional files, -want +got:\n%s", diff)
			}
			var files [][]byte
			for _, purpose := range pki.OfControlPlane(false) {
				files = append(files, get(t, w, pki.SecretName("test", purpose), &corev1.Secret{}).Data[pki.CertificateKey])
			}
			want := ""
			if tt.controlPlane {
				want = fleetv1.AuthoritiesOf(files...)
			}
			if got := get(t, w, "m", &corev1.Secret{}).Annotations[fleetv1.AuthoritiesAnnotation]; got != want || tt.controlPlane && (got != "") != tt.bundle {
				t.Errorf("the annotation is %q, want %q", got, want)
			}
			if tt.want == nil {
				return
			}
			config, err := clientcmd.Load([]byte(document.file(adminPath)))
			testenv.Must(t, err)
			if !bytes.Equal(config.Clusters["test"].CertificateAuthorityData, files[0]) {
				t.Error("admin.conf does not trust all CAs")
			}
			verified(t, adminPath, []byte(document.file(signingCAPath)), config.AuthInfos["kubernetes-admin"].ClientCertificateData, pki.ECDSA)
		})
	}
}
