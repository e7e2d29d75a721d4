package cloudinit

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"k8s.io/utils/ptr"
	k8syaml "sigs.k8s.io/yaml"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm/internal/bootstrapdata"
)

// read is what a machine must read from its document.
type read struct {
	Files []struct {
		Path        string `json:"path" yaml:"path"`
		Encoding    string `json:"encoding" yaml:"encoding"`
		Owner       string `json:"owner" yaml:"owner"`
		Permissions string `json:"permissions" yaml:"permissions"`
		Append      bool   `json:"append" yaml:"append"`
		Content     string `json:"content" yaml:"content"`
	} `json:"write_files" yaml:"write_files"`
	Commands []string `json:"runcmd" yaml:"runcmd"`
	NTP      struct {
		Servers []string `json:"servers" yaml:"servers"`
	} `json:"ntp" yaml:"ntp"`
	Users []struct {
		Name   string   `json:"name" yaml:"name"`
		Passwd string   `json:"passwd" yaml:"passwd"`
		Keys   []string `json:"ssh_authorized_keys" yaml:"ssh_authorized_keys"`
	} `json:"users" yaml:"users"`
	Mounts [][]string `json:"mounts" yaml:"mounts"`
}

// Whatever files, commands, users and mounts a spec has, a machine reads them as they were meant, byte for byte, with a
// parser for YAML 1.1 and with one for 1.2. Text that YAML cannot encode is an error.
func FuzzDocument(f *testing.F) {
	for _, evil := range []string{
		"#!/bin/sh\necho hello\n", "x\nruncmd:\n- evil\n", "  indented\nlines", "\ttabs\n\ttoo", "trailing spaces  \n  \n\n\n", "x\r\ny\r\n", "x\rz", "\n\nx", "é日本\u2028\u0085\ufeff",
		"{{ ds.meta_data.hostname }}", "\x00\x1b", "\xff\xfe", "yes", "0o17", "1:30", "~", "", " ", "#cloud-config", "...\n---\n", "a: b", "- |+\n  x\n\n", "x \ny", "😀", "\U000fffff",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", "x\n ", "x\n\t", "\u00a0x", "a\n\u3000b",
	} {
		f.Add("/etc/x", "0600", evil, evil, evil, true)
		f.Add(evil, evil, "content\n", "ls", "root", false)
	}
	f.Fuzz(func(t *testing.T, path, permissions, content, command, name string, retry bool) {
		if len(content) > 64<<10 {
			t.Skip("long")
		}
		in := bootstrapdata.Input{
			Files:       []bootstrapv1.File{{Path: path, Owner: name, Permissions: permissions, Content: content, Append: ptr.To(retry)}},
			PreCommands: []string{command}, PostCommands: []string{content, command},
			Users:   []bootstrapv1.User{{Name: name, Passwd: content, SSHAuthorizedKeys: []string{content, name}}},
			NTP:     &bootstrapv1.NTP{Servers: []string{name}},
			Mounts:  []bootstrapv1.MountPoints{{path, name}},
			Kubeadm: content,
		}
		document, err := Join(in, true, retry)
		if err != nil {
			for _, s := range []string{path, permissions, content, command, name} {
				if !utf8.ValidString(s) {
					return // YAML is text.
				}
			}
			t.Fatalf("text is rejected: %v", err)
		}
		if !bytes.HasPrefix(document, []byte(header)) {
			t.Fatalf("no cloud-config:\n%s", document)
		}
		for parser, unmarshal := range map[string]func(*read) error{
			"1.2": func(r *read) error { return yaml.Unmarshal(document, r) },
			"1.1": func(r *read) error { return k8syaml.Unmarshal(document, r) },
		} {
			var got read
			if err := unmarshal(&got); err != nil {
				t.Fatalf("no YAML %s: %v\n%q", parser, err, document)
			}
			checkRead(t, in, got, retry)
			if t.Failed() {
				t.Fatalf("YAML %s:\n%s", parser, document)
			}
		}
	})
}

func checkRead(t *testing.T, in bootstrapdata.Input, got read, retry bool) {
	t.Helper()
	files := 3
	if retry {
		files = 4
	}
	if len(got.Files) != files {
		t.Fatalf("%d files", len(got.Files))
	}
	first, kubeadm := got.Files[0], got.Files[files-2]
	want := in.Files[0]
	if diff := cmp.Diff([]any{want.Path, want.Owner, want.Permissions, want.Content, ptr.Deref(want.Append, false), joinConfigPath, in.Kubeadm},
		[]any{first.Path, first.Owner, first.Permissions, first.Content, first.Append, kubeadm.Path, kubeadm.Content}); diff != "" {
		t.Errorf("files: -want +got:\n%s", diff)
	}
	if n := len(got.Commands); n != 4 || !strings.Contains(got.Commands[1], "kubeadm") {
		t.Fatalf("%d commands: %q", n, got.Commands)
	}
	if diff := cmp.Diff([]string{in.PreCommands[0], in.PostCommands[0], in.PostCommands[1]}, []string{got.Commands[0], got.Commands[2], got.Commands[3]}); diff != "" {
		t.Errorf("commands: -want +got:\n%s", diff)
	}
	user := got.Users[0]
	if diff := cmp.Diff([]any{in.Users[0].Name, in.Users[0].Passwd, in.Users[0].SSHAuthorizedKeys, in.NTP.Servers, [][]string{in.Mounts[0]}},
		[]any{user.Name, user.Passwd, user.Keys, got.NTP.Servers, got.Mounts}); diff != "" {
		t.Errorf("users, time servers and mounts: -want +got:\n%s", diff)
	}
}
