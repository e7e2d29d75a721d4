package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"sigs.k8s.io/cluster-api/standalone/internal/certs"
	"sigs.k8s.io/cluster-api/standalone/internal/datadir"
)

// contextName is the name of cluster, user and context in the kubeconfig.
const contextName = "capi"

// CheckKubeconfig returns an error if the admin kubeconfig cannot be written to path, or would overwrite a kubeconfig
// with anything that was not written by an earlier run. It creates the folder if needed.
func CheckKubeconfig(path string) error {
	if err := checkWritable(filepath.Dir(path)); err != nil {
		return fmt.Errorf("cannot write the kubeconfig to %s, choose another file with --kubeconfig: %w", path, err)
	}
	existing, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s exists and is not a kubeconfig: choose another file with --kubeconfig: %w", path, err)
	}
	for name := range existing.Clusters {
		if name != contextName {
			return fmt.Errorf("%s contains other clusters (%q), and would be overwritten: choose another file with --kubeconfig", path, name)
		}
	}
	return nil
}

// checkWritable creates a folder if needed, and a temporary file in it.
func checkWritable(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	trial, err := os.CreateTemp(folder, ".capi-")
	if err != nil {
		return err
	}
	return errors.Join(trial.Close(), os.Remove(trial.Name()))
}

// writeKubeconfig writes the admin kubeconfig, readable only by this user. It writes nothing if the file is up to date.
func writeKubeconfig(path, server string, files certs.Files) error {
	var parts [3][]byte
	for i, file := range []string{files.CACert, files.AdminCert, files.AdminKey} {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("generate the kubeconfig: %w", err)
		}
		parts[i] = content
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[contextName] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: parts[0]}
	config.AuthInfos[contextName] = &clientcmdapi.AuthInfo{ClientCertificateData: parts[1], ClientKeyData: parts[2]}
	config.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: contextName}
	config.CurrentContext = contextName
	content, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("generate the kubeconfig: %w", err)
	}
	if existing, err := os.ReadFile(path); err == nil && string(existing) == string(content) {
		return os.Chmod(path, 0o600)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("create the folder of the kubeconfig: %w", err)
	}
	return datadir.WriteFile(path, content, 0o600)
}
