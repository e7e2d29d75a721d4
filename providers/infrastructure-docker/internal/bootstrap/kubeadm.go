package bootstrap

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"sigs.k8s.io/cluster-api/sdk/expansion"
)

// kubeadmFiles are the files that the kubeadm bootstrap provider writes the configuration of kubeadm to.
func kubeadmFiles() []string {
	return []string{"/run/kubeadm/kubeadm.yaml", "/run/kubeadm/kubeadm-join-config.yaml", "/etc/kubeadm.yml"}
}

// kubeadmScript is the script that the unit of kubeadm runs in Ignition documents.
const kubeadmScript = "/etc/kubeadm.sh"

// maxConfiguration is the size of a configuration with its YAML aliases expanded, in bytes.
const maxConfiguration = 8 << 20

const (
	criSocket = "unix:///run/containerd/containerd.sock"
	// ignoreFlag is the flag of kubeadm for checks whose failure is only a warning.
	ignoreFlag = "--ignore-preflight-errors"
)

// ignoredChecks are the preflight checks of kubeadm that fail in containers: they see kernel, swap and sysctls of the host.
func ignoredChecks() []string {
	return []string{"SystemVerification", "Swap", "FileContent--proc-sys-net-bridge-bridge-nf-call-iptables"}
}

// kubeletArgs are arguments of kubelets in containers. The disk, its space and the swap space are those of the host.
func kubeletArgs() [][2]string {
	return [][2]string{
		{"eviction-hard", "nodefs.available<0%,nodefs.inodesFree<0%,imagefs.available<0%"},
		{"fail-swap-on", "false"},
	}
}

// adapt makes kubeadm work in a container. What the user set has precedence.
//
// The ignored checks are both in kubeadm's configuration, which all its phases read, and in its commands. kubeadm merges both,
// except if one of them is "all".
func (p *Plan) adapt() {
	all := false
	for i := range p.Files {
		if f := &p.Files[i]; slices.Contains(kubeadmFiles(), f.Path) && !f.Append {
			content, ignoresAll, err := adaptConfiguration(f.Content)
			if err != nil {
				continue // kubeadm reports what is wrong with it.
			}
			f.Content, all = content, all || ignoresAll
		}
	}
	if all {
		return
	}
	for i := range p.Files {
		if f := &p.Files[i]; f.Path == kubeadmScript {
			f.Content = []byte(ignoreChecks(string(f.Content)))
		}
	}
	for i := range p.Commands {
		c := &p.Commands[i]
		c.Shell = ignoreChecks(c.Shell)
		if len(c.Args) > 1 && c.Args[0] == "kubeadm" && (c.Args[1] == "init" || c.Args[1] == "join") && !ignores(c.Args) &&
			!slices.Contains(c.Args, "phase") {
			c.Args = slices.Insert(slices.Clone(c.Args), 2, ignoreFlag+"="+strings.Join(ignoredChecks(), ","))
		}
	}
}

func ignores(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, ignoreFlag) })
}

// ignoreChecks adds the flag to lines that begin with kubeadm init or kubeadm join.
func ignoreChecks(script string) string {
	begins := regexp.MustCompile(`^[ \t]*kubeadm[ \t]+(init|join)\b`)
	var out strings.Builder
	for line := range strings.Lines(script) {
		at := begins.FindStringIndex(line)
		if at != nil && !strings.Contains(line, ignoreFlag) && !strings.HasPrefix(strings.TrimLeft(line[at[1]:], " \t"), "phase") {
			line = line[:at[1]] + " " + ignoreFlag + "=" + strings.Join(ignoredChecks(), ",") + line[at[1]:]
		}
		out.WriteString(line)
	}
	return out.String()
}

// adaptConfiguration adds to the registration of the Node in kubeadm's configuration. It reports whether kubeadm ignores all checks.
func adaptConfiguration(content []byte) (out []byte, ignoresAll bool, err error) {
	if err := expansion.Check(content, maxConfiguration); err != nil {
		return nil, false, err
	}
	var written bytes.Buffer
	encoder := yaml.NewEncoder(&written)
	encoder.SetIndent(2)
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		document := &yaml.Node{}
		if err := decoder.Decode(document); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, false, err
		}
		all, err := adaptDocument(document)
		if err != nil {
			return nil, false, err
		}
		ignoresAll = ignoresAll || all
		if err := encoder.Encode(document); err != nil {
			return nil, false, err
		}
	}
	if err := encoder.Close(); err != nil {
		return nil, false, err
	}
	return written.Bytes(), ignoresAll, nil
}

// errShape means that a configuration does not have the fields of kubeadm's types.
var errShape = errors.New("not a kubeadm configuration")

func adaptDocument(document *yaml.Node) (ignoresAll bool, err error) {
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return false, nil
	}
	root := document.Content[0]
	kind, version := textOf(root, "kind"), textOf(root, "apiVersion")
	if kind != "InitConfiguration" && kind != "JoinConfiguration" || !strings.HasPrefix(version, "kubeadm.k8s.io/") {
		return false, nil
	}
	registration, err := child(root, "nodeRegistration", yaml.MappingNode)
	if err != nil {
		return false, err
	}
	if textOf(registration, "criSocket") == "" {
		set(registration, "criSocket", text(criSocket))
	}
	checks, err := child(registration, "ignorePreflightErrors", yaml.SequenceNode)
	if err != nil {
		return false, err
	}
	ignoresAll = addChecks(checks)
	return ignoresAll, addKubeletArgs(registration, version)
}

// addChecks adds the ignored checks to a list, unless it has "all".
func addChecks(list *yaml.Node) (all bool) {
	has := func(check string) bool {
		return slices.ContainsFunc(list.Content, func(n *yaml.Node) bool { return strings.EqualFold(n.Value, check) })
	}
	if has("all") {
		return true
	}
	for _, check := range ignoredChecks() {
		if !has(check) {
			list.Content = append(list.Content, text(check))
		}
	}
	return false
}

// addKubeletArgs adds arguments that the user did not set: a map up to v1beta3, a list of names and values since.
func addKubeletArgs(registration *yaml.Node, version string) error {
	const field = "kubeletExtraArgs"
	if slices.Contains([]string{"kubeadm.k8s.io/v1beta1", "kubeadm.k8s.io/v1beta2", "kubeadm.k8s.io/v1beta3"}, version) {
		args, err := child(registration, field, yaml.MappingNode)
		if err != nil {
			return err
		}
		for _, arg := range kubeletArgs() {
			if value(args, arg[0]) == nil {
				set(args, arg[0], text(arg[1]))
			}
		}
		return nil
	}
	args, err := child(registration, field, yaml.SequenceNode)
	if err != nil {
		return err
	}
	for _, arg := range kubeletArgs() {
		if slices.ContainsFunc(args.Content, func(n *yaml.Node) bool { return textOf(n, "name") == arg[0] }) {
			continue
		}
		entry := &yaml.Node{Kind: yaml.MappingNode}
		set(entry, "name", text(arg[0]))
		set(entry, "value", text(arg[1]))
		args.Content = append(args.Content, entry)
	}
	return nil
}

// text returns a node that no YAML parser takes for another type than a string.
func text(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: value}
}

// value returns the value of a key, nil if the map does not have it.
func value(in *yaml.Node, key string) *yaml.Node {
	if in.Kind == yaml.AliasNode {
		in = in.Alias
	}
	if in.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(in.Content); i += 2 {
		if in.Content[i].Value == key {
			return in.Content[i+1]
		}
	}
	return nil
}

func textOf(in *yaml.Node, key string) string {
	if v := value(in, key); v != nil && v.Kind == yaml.ScalarNode && v.Tag != "!!null" {
		return v.Value
	}
	return ""
}

// child returns the map or list of a key, and creates it if it is missing or null.
func child(in *yaml.Node, key string, kind yaml.Kind) (*yaml.Node, error) {
	found := value(in, key)
	switch {
	case found == nil || found.Kind == yaml.ScalarNode && found.Tag == "!!null":
		found = &yaml.Node{Kind: kind}
		set(in, key, found)
	case found.Kind != kind:
		return nil, errShape
	}
	found.Style = 0 // {} becomes a block, which is easier to read.
	return found, nil
}

func set(in *yaml.Node, key string, v *yaml.Node) {
	for i := 0; i+1 < len(in.Content); i += 2 {
		if in.Content[i].Value == key {
			in.Content[i+1] = v
			return
		}
	}
	in.Content = append(in.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, v)
}
