// Command kstatus gives the verdict of a real kstatus client, as deployment tools use it to wait for an object, to
// tests of what the operator writes into status.
//
// In: Kubernetes objects as JSON, one per line. Out: for each one line with the status word of kstatus, a tab and
// its message, line breaks replaced by blanks; for a line that cannot be judged the word Error, a tab and the reason.
// Each answer is written out at once, so that the program can be asked and read in turn. It ends with its input.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	if err := answer(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kstatus:", err)
		os.Exit(1)
	}
}

func answer(in io.Reader, out io.Writer) error {
	// A bufio.Scanner would stop at a long line; an object may have megabytes.
	lines, oneLine := bufio.NewReader(in), strings.NewReplacer("\n", " ", "\r", " ")
	for {
		line, readErr := lines.ReadBytes('\n')
		if len(line) > 0 {
			word, message := verdict(line)
			// os.Stdout has no buffer: each line goes out here.
			if _, err := fmt.Fprintf(out, "%s\t%s\n", word, oneLine.Replace(message)); err != nil {
				return err
			}
		}
		if errors.Is(readErr, io.EOF) {
			return nil
		}
		if readErr != nil {
			return readErr
		}
	}
}

func verdict(line []byte) (word, message string) {
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(line); err != nil {
		return "Error", err.Error()
	}
	result, err := status.Compute(&object)
	if err != nil {
		return "Error", err.Error()
	}
	return result.Status.String(), result.Message
}
