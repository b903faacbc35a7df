package interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** Many mqadmin commands in one process: what each prints goes to a file. */
public final class Batch {

    /** Argument: a folder. Standard input: on each line FILE, a tab, the command and its arguments with tabs between. */
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] words = line.split("\t", -1);
            String said = Admin.mqadmin(java.util.Arrays.copyOfRange(words, 1, words.length));
            Files.writeString(Path.of(args[0], words[0]), said);
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
