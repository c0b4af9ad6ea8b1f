package comingfrom;

import com.scalar.db.api.DistributedTransaction;
import com.scalar.db.api.DistributedTransactionManager;
import com.scalar.db.api.Get;
import com.scalar.db.api.Insert;
import com.scalar.db.api.Result;
import com.scalar.db.api.Update;
import com.scalar.db.exception.transaction.CommitConflictException;
import com.scalar.db.exception.transaction.CrudConflictException;
import com.scalar.db.exception.transaction.TransactionException;
import com.scalar.db.io.Key;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;

/** Moves money between accounts in a transaction of ScalarDB. */
final class Payments {
    private final DistributedTransactionManager transactions;

    Payments(DistributedTransactionManager transactions) {
        this.transactions = transactions;
    }

    /**
     * Makes a payment once, or returns false: there is not enough money. After an
     * UnknownTransactionStatusException the same payment may be tried again.
     */
    boolean transfer(String payment, String from, String to, long amount) throws TransactionException, InterruptedException {
        for (int n = 0; ; n++) {
            DistributedTransaction transaction = transactions.begin();
            try {
                boolean made = transfer(transaction, payment, from, to, amount);
                transaction.commit();
                return made;
            } catch (CrudConflictException | CommitConflictException conflict) {
                transaction.rollback();
                if (n == 20) {
                    throw conflict;
                }
                Thread.sleep(ThreadLocalRandom.current().nextLong(20L << Math.min(n, 5)));
            }
        }
    }

    private static boolean transfer(DistributedTransaction transaction, String payment, String from, String to, long amount)
            throws TransactionException {
        Key made = Key.ofText("id", payment);
        if (transaction.get(Get.newBuilder().namespace("bank").table("payments").partitionKey(made).build()).isPresent()) {
            return true;
        }
        Optional<Result> a = transaction.get(Get.newBuilder().namespace("bank").table("accounts").partitionKey(Key.ofText("id", from)).build());
        Optional<Result> b = transaction.get(Get.newBuilder().namespace("bank").table("accounts").partitionKey(Key.ofText("id", to)).build());
        if (a.isEmpty() || b.isEmpty() || a.get().getBigInt("balance") < amount) {
            return false;
        }
        transaction.update(balance(from, a.get().getBigInt("balance") - amount));
        transaction.update(balance(to, b.get().getBigInt("balance") + amount));
        transaction.insert(Insert.newBuilder().namespace("bank").table("payments").partitionKey(made).build());
        return true;
    }

    private static Update balance(String account, long balance) {
        return Update.newBuilder().namespace("bank").table("accounts")
                .partitionKey(Key.ofText("id", account)).bigIntValue("balance", balance).build();
    }
}
