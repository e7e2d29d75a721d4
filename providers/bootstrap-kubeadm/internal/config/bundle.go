package config

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// While CAs are rotated, the file of a CA has several certificates: the first one signs, and all are trusted. kubeadm and Kubernetes accept
// that, with two exceptions, for which control plane Machines get additional files. They are not in the spec of the KubeadmConfig: a
// control plane would replace Machines because of them.
const (
	// signingCAPath has the first certificate alone: kube-controller-manager does not start if --cluster-signing-cert-file has several.
	signingCAPath = "/etc/kubernetes/pki/ca-signing.crt"
	// defaultPatches is the directory of kubeadm's patches, unless the spec has one.
	defaultPatches = "/etc/kubernetes/patches"
	// signingPatchFile patches the manifest of kube-controller-manager. The last one of a flag wins.
	signingPatchFile = "kube-controller-manager90clusterapi+json.json"
	signingPatch     = `[{"op":"add","path":"/spec/containers/0/command/-",` +
		`"value":"--cluster-signing-cert-file=` + signingCAPath + `"}]` + "\n"
	// adminPath is the kubeconfig with which kubeadm join adds an etcd member. kubeadm would write only the first certificate into it, and
	// the API server that answers may have a certificate of the other CA. It keeps a file that exists.
	adminPath = "/etc/kubernetes/admin.conf"
	// adminValidity is that of kubeadm's client certificates.
	adminValidity = 365 * 24 * time.Hour
)

// bundled returns the cluster CA that signs if its file has several certificates and its key is there; otherwise nil.
func bundled(certificates []bootstrapv1.File) (*pki.CA, error) {
	crt, key := fileAt(certificates, paths[pki.ClusterCA][0]), fileAt(certificates, paths[pki.ClusterCA][1])
	if bytes.Count(crt, []byte("BEGIN CERTIFICATE")) < 2 || len(key) == 0 {
		return nil, nil
	}
	ca, err := pki.ParseCA(crt, key)
	if err != nil {
		return nil, fmt.Errorf("the cluster CA: %w", err)
	}
	return ca, nil
}

func fileAt(files []bootstrapv1.File, path string) []byte {
	if i := slices.IndexFunc(files, func(f bootstrapv1.File) bool { return f.Path == path }); i >= 0 {
		return []byte(files[i].Content)
	}
	return nil
}

// signingFiles returns what kube-controller-manager needs on a control plane Machine if the cluster CA has several certificates, and sets
// the directory of patches.
func signingFiles(ca *pki.CA, patches *bootstrapv1.Patches) ([]bootstrapv1.File, error) {
	if ca == nil {
		return nil, nil
	}
	first, err := cert.EncodeCertificates(ca.Certificate)
	if err != nil {
		return nil, fmt.Errorf("encoding the cluster CA: %w", err)
	}
	if patches.Directory == "" {
		patches.Directory = defaultPatches
	}
	return []bootstrapv1.File{
		{Path: signingCAPath, Owner: "root:root", Permissions: "0640", Content: string(first)},
		{Path: patches.Directory + "/" + signingPatchFile, Owner: "root:root", Permissions: "0644", Content: signingPatch},
	}, nil
}

// adminFile returns the kubeconfig for a control plane Machine that joins while the cluster CA has several certificates.
func (c *Controller) adminFile(s *scope, ca *pki.CA, trusted []byte, kubernetes string) ([]bootstrapv1.File, error) {
	endpoint := s.cluster.Spec.ControlPlaneEndpoint
	if ca == nil || !endpoint.IsValid() {
		return nil, nil
	}
	request := pki.Request{
		CommonName: "kubernetes-admin", Organizations: []string{adminGroup(kubernetes)}, Validity: adminValidity,
		Algorithm: pki.AlgorithmOf(ca.Certificate),
	}
	pair, err := ca.Issue(request, c.Clock.Now())
	if err != nil {
		return nil, fmt.Errorf("issuing the certificate of %s: %w", adminPath, err)
	}
	name := s.cluster.Name
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: "https://" + endpoint.String(), CertificateAuthorityData: trusted}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{request.CommonName: {ClientCertificateData: pair.Certificate, ClientKeyData: pair.Key}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: request.CommonName}},
		CurrentContext: name,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding %s", adminPath) // The cause could contain the key.
	}
	return []bootstrapv1.File{{Path: adminPath, Owner: "root:root", Permissions: "0600", Content: string(content)}}, nil
}

// adminGroup returns the group of admin.conf, which is that of kubeadm's: since v1.29 a group with a ClusterRoleBinding.
func adminGroup(kubernetes string) string {
	if v, err := version.ParseSemantic(kubernetes); err == nil && v.LessThan(version.MustParseSemantic("v1.29.0")) {
		return "system:masters"
	}
	return "kubeadm:cluster-admins"
}

// authorities returns the value of AuthoritiesAnnotation for the certificates of a control plane Machine; empty if no file has several.
func authorities(certificates []bootstrapv1.File) string {
	var all [][]byte
	for _, purpose := range pki.OfControlPlane(false) {
		all = append(all, fileAt(certificates, paths[purpose][0]))
	}
	return fleetv1.AuthoritiesOf(all...)
}

// joinBundle returns the additional files of a control plane Machine that joins.
func (c *Controller) joinBundle(
	s *scope, certificates []bootstrapv1.File, join *bootstrapv1.JoinConfiguration, kubernetes string,
) ([]bootstrapv1.File, error) {
	s.authorities = authorities(certificates)
	ca, err := bundled(certificates)
	if err != nil {
		return nil, err
	}
	files, err := signingFiles(ca, &join.Patches)
	if err != nil {
		return nil, err
	}
	admin, err := c.adminFile(s, ca, fileAt(certificates, paths[pki.ClusterCA][0]), kubernetes)
	return append(files, admin...), err
}

// initBundle returns the additional files of a Machine that initializes a control plane.
func initBundle(s *scope, certificates []bootstrapv1.File, initialize *bootstrapv1.InitConfiguration) ([]bootstrapv1.File, error) {
	s.authorities = authorities(certificates)
	ca, err := bundled(certificates)
	if err != nil {
		return nil, err
	}
	return signingFiles(ca, &initialize.Patches)
}
