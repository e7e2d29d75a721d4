package bootstrap

import (
	"bufio"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	k8syaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/providers/internal/userdata"
	"sigs.k8s.io/cluster-api/sdk/expansion"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// Paths of files that the kubeadm bootstrap provider writes on a machine.
const (
	initPath = "/run/kubeadm/kubeadm.yaml"
	joinPath = "/run/kubeadm/kubeadm-join-config.yaml"
	caPath   = "/etc/kubernetes/pki/ca.crt"

	// These are for external etcd.
	etcdCAPath        = "/etc/kubernetes/pki/etcd/ca.crt"
	etcdClientPath    = "/etc/kubernetes/pki/apiserver-etcd-client.crt"
	etcdClientKeyPath = "/etc/kubernetes/pki/apiserver-etcd-client.key"

	// These are in Ignition documents.
	ignitionConfigPath = "/etc/kubeadm.yml"
	ignitionScriptPath = "/etc/kubeadm.sh"

	defaultCertificates = "/etc/kubernetes/pki"
)

// ignitionFormat is the format of Ignition documents.
const ignitionFormat = "ignition"

// initLine is the line of the script in Ignition documents by which a machine initializes a control plane; others have
// "kubeadm join".
var initLine = regexp.MustCompile(`(?m)^kubeadm init( |$)`)

// Action is what a machine does at its first start.
type Action string

const (
	// Unknown is data in an unsupported format.
	Unknown Action = ""
	// Init creates a cluster.
	Init Action = "init"
	// Join adds the machine to a cluster.
	Join Action = "join"
)

// Data is parsed bootstrap data. The zero value is data of an unsupported format.
type Data struct {
	// Action is what the machine does.
	Action Action `json:"action,omitempty"`
	// ControlPlane is whether a joining machine gets a control plane. An initializing one always does.
	ControlPlane bool `json:"controlPlane,omitempty"`
	// Token is the bootstrap token of a joining machine. Empty if it uses a kubeconfig for discovery.
	Token string `json:"token,omitempty"`
	// CAHashes pin the cluster's CA, as in kubeadm.
	CAHashes []string `json:"caHashes,omitempty"`
	// CAHash is the hash of the CA in the data, empty if there is none.
	CAHash string `json:"caHash,omitempty"`
	// CA and EtcdCA are the certificates of the cluster and etcd CAs in PEM, of a control plane. The first one signs.
	CA     string `json:"ca,omitempty"`
	EtcdCA string `json:"etcdCA,omitempty"`
	// ExternalEtcd are the endpoints of external etcd in the configuration of an initializing machine.
	ExternalEtcd []string `json:"externalEtcd,omitempty"`
	// EtcdTag is the image tag of etcd in the configuration of an initializing machine.
	EtcdTag string `json:"etcdTag,omitempty"`
	// EtcdClient is whether the data has the files for external etcd: its CA, and a client certificate with its key.
	EtcdClient bool `json:"etcdClient,omitempty"`
	// Restore is data of etcd that an initializing machine downloads first; nil for none.
	Restore *Restore `json:"restore,omitempty"`
	// Problem is why cloud-init or kubeadm rejects the data.
	Problem string `json:"problem,omitempty"`
}

// Read parses the value of a bootstrap data Secret. An empty format means cloud-config. Data without any content is
// userdata.ErrEmpty.
func Read(value []byte, format string) (Data, error) {
	data, err := userdata.Read(value, format)
	switch unsupported := (*userdata.UnsupportedError)(nil); {
	case errors.Is(err, userdata.ErrEmpty):
		return Data{}, err
	case errors.As(err, &unsupported):
		return Data{}, nil
	case err != nil:
		return Data{Problem: err.Error()}, nil
	}
	files := contents(data.Files)
	if text, ok := files[ignitionConfigPath]; ok && format == ignitionFormat {
		script := files[ignitionScriptPath]
		return fromFiles(files, lines(data, script), text, initLine.MatchString(script)), nil
	}
	if text, ok := files[initPath]; ok {
		return fromFiles(files, lines(data, ""), text, true), nil
	}
	if text, ok := files[joinPath]; ok {
		return fromFiles(files, lines(data, ""), text, false), nil
	}
	return Data{}, nil
}

// contents returns the contents of files by path. The last file of a path wins; files that would have to be downloaded are not
// read.
func contents(files []userdata.File) map[string]string {
	all := map[string]string{}
	for _, f := range files {
		switch {
		case f.External:
			delete(all, f.Path)
		case f.Append:
			all[f.Path] += string(f.Content)
		default:
			all[f.Path] = string(f.Content)
		}
	}
	return all
}

// configuration holds the relevant fields of all versions of kubeadm's configuration kinds.
type configuration struct {
	Kind            string          `json:"kind"`
	CertificatesDir string          `json:"certificatesDir"`
	ControlPlane    json.RawMessage `json:"controlPlane"`
	Discovery       struct {
		BootstrapToken *struct {
			Token    string   `json:"token"`
			CAHashes []string `json:"caCertHashes"`
			Unsafe   bool     `json:"unsafeSkipCAVerification"`
		} `json:"bootstrapToken"`
		File json.RawMessage `json:"file"`
	} `json:"discovery"`
	NodeRegistration struct {
		IgnorePreflightErrors []string `json:"ignorePreflightErrors"`
	} `json:"nodeRegistration"`
	Etcd struct {
		Local struct {
			ImageTag string `json:"imageTag"`
		} `json:"local"`
		External *struct {
			Endpoints []string `json:"endpoints"`
		} `json:"external"`
	} `json:"etcd"`
}

// externalEtcd returns the endpoints of external etcd.
func (c *configuration) externalEtcd() []string {
	if c == nil || c.Etcd.External == nil {
		return nil
	}
	return c.Etcd.External.Endpoints
}

// EtcdTag returns the image tag of etcd in a ClusterConfiguration of kubeadm in YAML; empty if it has none, or is invalid.
func EtcdTag(text string) string {
	c := &configuration{}
	if readYAML([]byte(text), c) != nil {
		return ""
	}
	return c.Etcd.Local.ImageTag
}

// UsesExternalEtcd reports whether a ClusterConfiguration of kubeadm in YAML has external etcd. Invalid YAML has not.
func UsesExternalEtcd(text string) bool {
	c := &configuration{}
	return readYAML([]byte(text), c) == nil && c.Etcd.External != nil
}

// fromFiles returns what a machine with these files and commands does: kubeadm has the configuration text.
func fromFiles(files map[string]string, commands []string, text string, initializes bool) Data {
	d, kinds := ofKubeadm(files, text, initializes)
	registration := kinds["InitConfiguration"]
	if !initializes {
		registration = kinds["JoinConfiguration"]
	}
	d.readRestore(commands, files, registration)
	return d
}

// ofKubeadm returns what kubeadm does with its configuration, text, and the files of the machine, and the configuration by kind.
func ofKubeadm(files map[string]string, text string, initializes bool) (Data, map[string]*configuration) {
	kinds, err := configurations(text)
	if err != nil {
		return Data{Problem: "kubeadm cannot parse its configuration: invalid YAML"}, nil
	}
	d := Data{Action: Join, CAHash: hashOf(files[caPath]), CA: files[caPath], EtcdCA: files[etcdCAPath]}
	d.EtcdClient = files[etcdCAPath] != "" && files[etcdClientPath] != "" && files[etcdClientKeyPath] != ""
	if initializes {
		d.Action, d.ControlPlane = Init, true
		d.ExternalEtcd = kinds["ClusterConfiguration"].externalEtcd()
		if c := kinds["ClusterConfiguration"]; c != nil {
			d.EtcdTag = c.Etcd.Local.ImageTag
		}
	} else {
		d.readJoin(kinds["JoinConfiguration"])
	}
	if c := kinds["ClusterConfiguration"]; c != nil && c.CertificatesDir != "" && c.CertificatesDir != defaultCertificates {
		return d, kinds // Users provide the certificates themselves.
	}
	if d.Problem == "" && d.ControlPlane && d.CAHash == "" {
		d.Problem = "the bootstrap data contains no CA: kubeadm would generate an untrusted one, or fail to join a control plane"
	}
	return d, kinds
}

func (d *Data) readJoin(c *configuration) {
	if c == nil {
		d.Problem = "kubeadm join has no JoinConfiguration"
		return
	}
	d.ControlPlane = len(c.ControlPlane) > 0 && string(c.ControlPlane) != "null"
	token := c.Discovery.BootstrapToken
	switch {
	case len(c.Discovery.File) > 0 && string(c.Discovery.File) != "null":
	case token == nil || token.Token == "":
		d.Problem = "discovery: Invalid value: bootstrapToken or file must be set"
	case len(token.CAHashes) == 0 && !token.Unsafe:
		d.Problem = "discovery.bootstrapToken: Invalid value: using token-based discovery without caCertHashes can be unsafe. Set " +
			"unsafeSkipCAVerification as true in your kubeadm config file to continue"
	default:
		d.Token, d.CAHashes = token.Token, token.CAHashes
	}
}

func configurations(text string) (map[string]*configuration, error) {
	kinds := map[string]*configuration{}
	documents := k8syaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return kinds, nil
		}
		c := &configuration{}
		if err == nil {
			err = readYAML(document, c)
		}
		if err != nil {
			return nil, fmt.Errorf("decode kubeadm's configuration: %w", err)
		}
		kinds[c.Kind] = c
	}
}

// maxDocument is how much a document may hold with its YAML aliases written out, in bytes: as much as a Secret.
const maxDocument = 1 << 20

func readYAML(text []byte, into any) error {
	if err := expansion.Check(text, maxDocument); err != nil {
		return err
	}
	return yaml.Unmarshal(text, into)
}

// hashOf returns the pin of a certificate, as in kubeadm; empty if it is invalid.
func hashOf(text string) string {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return ""
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return ""
	}
	return pki.PublicKeyHash(certificate)
}

// Encode serializes the data for storage with a machine. It contains a bootstrap token.
func (d Data) Encode() (string, error) {
	text, err := json.Marshal(d)
	return string(text), err
}

// Decode is the reverse of Encode.
func Decode(text string) (Data, error) {
	var d Data
	if text == "" {
		return d, nil
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return Data{}, errors.New("the stored bootstrap data of the machine is invalid") // The error would quote it.
	}
	return d, nil
}
