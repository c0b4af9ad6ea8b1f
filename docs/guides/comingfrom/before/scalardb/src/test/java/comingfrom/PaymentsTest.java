package comingfrom;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.scalar.db.api.DistributedTransaction;
import com.scalar.db.api.DistributedTransactionAdmin;
import com.scalar.db.api.DistributedTransactionManager;
import com.scalar.db.api.Get;
import com.scalar.db.api.TableMetadata;
import com.scalar.db.api.Upsert;
import com.scalar.db.io.DataType;
import com.scalar.db.io.Key;
import com.scalar.db.service.TransactionFactory;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;

/** Tries the program, and what the page says of ScalarDB's tables, on the engine of -Dendpoint. */
final class PaymentsTest {
    private static final List<String> ACCOUNTS = List.of("a", "b", "c", "d");
    private static DistributedTransactionManager transactions;

    @BeforeAll
    static void createTables() throws Exception {
        Properties properties = new Properties();
        properties.setProperty("scalar.db.storage", "dynamo");
        properties.setProperty("scalar.db.contact_points", "us-east-1");
        properties.setProperty("scalar.db.username", "holdall");
        properties.setProperty("scalar.db.password", "holdall");
        properties.setProperty("scalar.db.dynamo.endpoint_override", System.getProperty("endpoint"));
        properties.setProperty("scalar.db.consensus_commit.isolation_level", "SERIALIZABLE");
        TransactionFactory factory = TransactionFactory.create(properties);
        Map<String, String> options = Map.of("no-scaling", "true", "no-backup", "true"); // the engine has neither
        try (DistributedTransactionAdmin admin = factory.getTransactionAdmin()) {
            admin.createCoordinatorTables(true, options);
            admin.createNamespace("bank", true, options);
            admin.createTable("bank", "accounts", TableMetadata.newBuilder()
                    .addColumn("id", DataType.TEXT).addColumn("balance", DataType.BIGINT).addPartitionKey("id").build(), true, options);
            admin.createTable("bank", "payments", TableMetadata.newBuilder()
                    .addColumn("id", DataType.TEXT).addPartitionKey("id").build(), true, options);
        }
        transactions = factory.getTransactionManager();
    }

    @AfterAll
    static void close() {
        transactions.close();
    }

    @BeforeEach
    void open() throws Exception {
        DistributedTransaction transaction = transactions.begin();
        for (String account : ACCOUNTS) {
            transaction.upsert(Upsert.newBuilder().namespace("bank").table("accounts")
                    .partitionKey(Key.ofText("id", account)).bigIntValue("balance", 100).build());
        }
        transaction.commit();
    }

    /** Payments made at the same time lose no money and make none, and each is made once. */
    @Test
    void theSumStaysTheSame() throws Exception {
        long seed = System.nanoTime();
        System.out.println("seed " + seed);
        Random draw = new Random(seed);
        long[] want = {100, 100, 100, 100};
        Payments program = new Payments(transactions);
        ExecutorService threads = Executors.newFixedThreadPool(4);
        List<Future<Boolean>> all = new ArrayList<>();
        for (int i = 0; i < 30; i++) {
            int from = draw.nextInt(4);
            int to = (from + 1 + draw.nextInt(3)) % 4;
            want[from]--;
            want[to]++;
            String payment = "payment-" + i;
            all.add(threads.submit(() -> program.transfer(payment, ACCOUNTS.get(from), ACCOUNTS.get(to), 1)
                    && program.transfer(payment, ACCOUNTS.get(from), ACCOUNTS.get(to), 1)));
        }
        for (Future<Boolean> one : all) {
            assertTrue(one.get());
        }
        threads.shutdown();
        for (int i = 0; i < 4; i++) {
            assertEquals(want[i], balance(ACCOUNTS.get(i)), "account " + i);
        }
        assertFalse(program.transfer("too much", "a", "b", 1000));
    }

    /** What an account looks like in DynamoDB: its name, its keys, and what ScalarDB keeps in it. */
    @Test
    void theTableIsScalarDBsOwn() throws Exception {
        new Payments(transactions).transfer("look", "a", "b", 1);
        Map<String, AttributeValue> item;
        try (DynamoDbClient db = DynamoDbClient.builder()
                .endpointOverride(URI.create(System.getProperty("endpoint"))).region(Region.US_EAST_1)
                .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("holdall", "holdall")))
                .build()) {
            item = db.scan(request -> request.tableName("bank.accounts").consistentRead(true)).items().stream()
                    .filter(i -> i.get("id").s().equals("a")).findFirst().orElseThrow();
        }
        assertTrue(item.get("concatenatedPartitionKey").b() != null, "the key is bytes");
        assertEquals(Set.of("concatenatedPartitionKey", "id", "balance",
                "tx_id", "tx_state", "tx_version", "tx_prepared_at", "tx_committed_at"), item.keySet());
    }

    private static long balance(String account) throws Exception {
        DistributedTransaction transaction = transactions.begin();
        long balance = transaction.get(Get.newBuilder().namespace("bank").table("accounts")
                .partitionKey(Key.ofText("id", account)).build()).orElseThrow().getBigInt("balance");
        transaction.commit();
        return balance;
    }
}
