package bootstrap

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/backup/restorescript"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd/database"
	"sigs.k8s.io/cluster-api/providers/internal/userdata"
)

const (
	// restoreScriptPath is a script that fills etcd's data directory, and restorePath its configuration.
	restoreScriptPath = fleetv1.RestoreScriptPath
	restorePath       = fleetv1.RestoreConfigPath
	// directoryCheck is kubeadm's preflight check that etcd's data directory is empty.
	directoryCheck = "DirAvailable--var-lib-etcd"
)

// Limits of a download.
const (
	maxDownload     = 256 << 20
	downloadTimeout = 30 * time.Second
)

// restoreLine is a command that runs the script, also after others.
var restoreLine = regexp.MustCompile(`(?:^|&&)\s*/bin/sh ` + regexp.QuoteMeta(restoreScriptPath) + `( |$)`)

// kubeadmLine is a command that runs kubeadm init or kubeadm join.
var kubeadmLine = regexp.MustCompile(`(?m)^\s*kubeadm (init|join)( |$)`)

// ignoreFlag is the value of a flag of kubeadm.
var ignoreFlag = regexp.MustCompile(`--ignore-preflight-errors[= ]+["']?([^\s"']+)`)

// Restore is data of etcd that a machine downloads before kubeadm runs: a gzipped tar of etcd's data directory, encrypted with AES-256-CTR.
type Restore struct{ restorescript.Config }

// readRestore sets what the data does with etcd's data directory before kubeadm runs. Machines without etcd do not use it.
func (d *Data) readRestore(commands []string, files map[string]string, init *configuration) {
	kubeadm := slices.IndexFunc(commands, kubeadmLine.MatchString)
	run := slices.IndexFunc(commands, restoreLine.MatchString)
	if d.Problem != "" || !d.ControlPlane || len(d.ExternalEtcd) > 0 || run < 0 || kubeadm >= 0 && kubeadm < run {
		return
	}
	text, ok := files[restorePath]
	if _, script := files[restoreScriptPath]; !script || !ok {
		d.Problem = fmt.Sprintf("the bootstrap data runs %q, but does not have both %s and %s", commands[run], restoreScriptPath,
			restorePath)
		return
	}
	config, err := restorescript.Parse(text)
	line := ""
	if kubeadm >= 0 {
		line = commands[kubeadm]
	}
	switch {
	case err != nil:
		d.Problem = fmt.Sprintf("%s is invalid: %v", restorePath, err)
	case !ignoresDirectory(line, init):
		d.Problem = "kubeadm fails: [ERROR " + directoryCheck + "]: /var/lib/etcd is not empty; run it with --ignore-preflight-errors=" +
			directoryCheck
	case d.Action == Join:
		d.Problem = "kubeadm join fails: etcd starts with the data in /var/lib/etcd, and does not join the cluster"
	default:
		d.Restore = &Restore{config}
	}
}

// ignoresDirectory reports whether kubeadm ignores its check that etcd's data directory is empty, by its command line or configuration.
func ignoresDirectory(line string, c *configuration) bool {
	var ignored []string
	if flag := ignoreFlag.FindStringSubmatch(line); flag != nil {
		ignored = strings.Split(flag[1], ",")
	}
	if c != nil {
		ignored = append(ignored, c.NodeRegistration.IgnorePreflightErrors...)
	}
	return slices.ContainsFunc(ignored, func(one string) bool {
		return strings.EqualFold(one, directoryCheck) || strings.EqualFold(one, "all")
	})
}

// lines returns the commands of bootstrap data: those of runcmd, or the lines of the script in Ignition documents.
func lines(data *userdata.Data, script string) []string {
	if script != "" {
		return strings.Split(script, "\n")
	}
	var all []string
	for _, c := range data.Commands {
		if c.Shell != "" {
			all = append(all, c.Shell)
		} else {
			all = append(all, strings.Join(c.Args, " "))
		}
	}
	return all
}

// Fetch downloads, checks, decrypts and reads the data directory, like the script on a real machine. Redirects are errors. Errors do not
// quote the URL.
func (r Restore) Fetch(ctx context.Context) (*database.Directory, error) {
	file, err := os.CreateTemp("", "capim-restore-")
	if err != nil {
		return nil, fmt.Errorf("create a temporary file: %w", err)
	}
	defer file.Close() //nolint:errcheck // It is read to its end.
	// Without a name, nothing is left of it if the process is killed.
	if err := os.Remove(file.Name()); err != nil {
		return nil, err
	}
	sum, err := r.download(ctx, file)
	if err != nil {
		return nil, fmt.Errorf("%s fails: downloading the data of etcd: %w", restoreScriptPath, err)
	}
	if want, _ := hex.DecodeString(r.SHA256); !bytes.Equal(sum, want) {
		return nil, fmt.Errorf("%s fails: the SHA-256 of the data of etcd is %x, want %s", restoreScriptPath, sum, strings.ToLower(r.SHA256))
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	d, err := r.unpack(file)
	if err != nil {
		return nil, fmt.Errorf("%s fails: unpacking the data of etcd: %w", restoreScriptPath, err)
	}
	return d, nil
}

// download writes the body of the response to a file, and returns its hash.
func (r Restore) download(ctx context.Context, to io.Writer) ([]byte, error) {
	transport := &http.Transport{DisableKeepAlives: true}
	client := &http.Client{
		Transport: transport, Timeout: downloadTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL, http.NoBody)
	if err != nil {
		return nil, errors.New("the URL is invalid")
	}
	response, err := client.Do(request)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err
		}
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server responded with %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(response.Body, maxDownload+1))
	if err != nil {
		return nil, err
	}
	if n > maxDownload {
		return nil, fmt.Errorf("it has more than %d bytes", maxDownload)
	}
	return sum.Sum(nil), nil
}

// unpack decrypts and reads the data directory.
func (r Restore) unpack(from io.Reader) (*database.Directory, error) {
	key, err := hex.DecodeString(r.Key)
	if err != nil {
		return nil, errors.New("the key is invalid")
	}
	iv, err := hex.DecodeString(r.IV)
	if err != nil || len(iv) != aes.BlockSize {
		return nil, errors.New("the iv is invalid")
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, errors.New("the key is invalid")
	}
	return database.ReadDirectory(cipher.StreamReader{S: cipher.NewCTR(block, iv), R: from})
}
